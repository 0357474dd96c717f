package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/chatclients"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A client is the AI SDK's chat in Node (testdata/client.mjs).
type client struct {
	*chatclients.Driver
	t *testing.T
}

// chat is the state of a chat.
type chat struct {
	Status, Error string
	Events        int
	Wrong         []string
	Messages      []message
}

type message struct {
	ID, Role string
	Parts    []part
}

type part struct {
	Type, Text, Filename, ToolName, ToolCallID, State, ErrorText string
	Input, Output                                                json.RawMessage
	Approval                                                     struct{ ID string }
	Data                                                         struct {
		RunID, Status, Message string
		Approvals              []testkit.Approval
	}
}

// connect starts a client of one release for the user. id is the client's own ID for the chat.
func connect(t *testing.T, w *testkit.Deployment, release, uid, id string) *client {
	t.Helper()
	modules := chatclients.Modules(t)
	token, err := w.SignIn(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	return &client{chatclients.Drive(t, "testdata/client.mjs", "AI="+filepath.Join(modules, release),
		"URL_OF_UI="+w.Base+"/api/agent/ui", "TOKEN="+token, "CHAT="+id), t}
}

// does performs an action of the user, and returns the chat's new state.
func (c *client) does(what string, with map[string]any) (now chat) {
	c.t.Helper()
	c.Do(what, with, &now)
	if len(now.Wrong) > 0 {
		c.t.Errorf("%s: chunks that the client does not know: %q", what, now.Wrong)
	}
	return now
}

func (c *client) says(text string) chat {
	c.t.Helper()
	return c.does("send", map[string]any{"text": text})
}

// answers answers every open approval of the chat.
func (c *client) answers(asked chat, approved bool) chat {
	c.t.Helper()
	var all []any
	for _, p := range asked.asks() {
		all = append(all, map[string]any{"id": p.Approval.ID, "approved": approved})
	}
	if len(all) == 0 {
		c.t.Fatalf("nothing is asked in %s", asked)
	}
	return c.does("answer", map[string]any{"answers": all})
}

// asks returns the calls that wait for approval.
func (now chat) asks() (calls []part) {
	for _, m := range now.Messages {
		for _, p := range m.Parts {
			if p.State == "approval-requested" {
				calls = append(calls, p)
			}
		}
	}
	return calls
}

// String summarises the chat's messages.
func (now chat) String() string {
	var said []string
	for _, m := range now.Messages {
		for _, p := range m.Parts {
			switch p.Type {
			case "text":
				said = append(said, m.Role+": "+p.Text)
			case "dynamic-tool":
				said = append(said, p.ToolName+" "+p.State)
			case "file":
				said = append(said, "file "+p.Filename)
			case "reasoning":
				said = append(said, "thought: "+p.Text)
			case "data-run":
				said = append(said, "run "+p.Data.Status)
			}
		}
	}
	if now.Status != "ready" {
		said = append(said, now.Status+" "+now.Error)
	}
	return strings.Join(said, "; ")
}

func want(t *testing.T, now chat, text string) {
	t.Helper()
	if got := now.String(); got != text {
		t.Errorf("the chat reads\n%s\nwant\n%s", got, text)
	}
}

// releases are the tested releases of the AI SDK.
var releases = map[string]string{"ai 7": chatclients.AI7, "ai 6": chatclients.AI6}

// each runs the test with a client of each release, each with its own deployment.
func each(t *testing.T, test func(t *testing.T, w *testkit.Deployment, c *client)) {
	for name, release := range releases {
		t.Run(name, func(t *testing.T) {
			w := chatclients.Open(t)
			test(t, w, connect(t, w, release, "ana", "chat"))
		})
	}
}

// sent checks the total number of e-mails sent.
func sent(t *testing.T, w *testkit.Deployment, n int) {
	t.Helper()
	if got := len(w.Google.Messages()); got != n {
		t.Errorf("%d e-mails were sent, want %d", got, n)
	}
}

const (
	waitsForBob = "user: mail bob; run awaiting_confirmation; gmail_send approval-requested"
	sentToBob   = "run completed; gmail_send output-available; assistant: That is what came of it."
)

func TestMailApproved(t *testing.T) {
	each(t, func(t *testing.T, w *testkit.Deployment, c *client) {
		want(t, c.says("hello"), "user: hello; run completed; assistant: Hello.")
		chatclients.Mails(w, "bob@example.com")
		asked := c.says("mail bob")
		want(t, asked, "user: hello; run completed; assistant: Hello.; "+waitsForBob)
		if cards := asked.Messages[3].Parts[0].Data.Approvals; len(cards) != 1 || cards[0].Tool != "gmail_send" {
			t.Errorf("it has the cards %v", cards)
		}
		want(t, c.answers(asked, true), "user: hello; run completed; assistant: Hello.; user: mail bob; "+sentToBob)
		sent(t, w, 1)
		want(t, c.does("resume", nil), "user: hello; run completed; assistant: Hello.; user: mail bob; "+sentToBob)
	})
}

func TestMailDenied(t *testing.T) {
	each(t, func(t *testing.T, w *testkit.Deployment, c *client) {
		chatclients.Mails(w, "bob@example.com")
		want(t, c.answers(c.says("mail bob"), false), "user: mail bob; run completed; gmail_send output-denied; "+
			"assistant: You rejected this, so it was not done.")
		sent(t, w, 0)
	})
}

// TestApprovalOfOtherBytes refuses an approval whose ID has another hash.
func TestApprovalOfOtherBytes(t *testing.T) {
	each(t, func(t *testing.T, w *testkit.Deployment, c *client) {
		chatclients.Mails(w, "bob@example.com")
		id := c.says("mail bob").asks()[0].Approval.ID
		other := id[:len(id)-1] + "0"
		if strings.HasSuffix(id, "0") {
			other = id[:len(id)-1] + "1"
		}
		yes := map[string]any{"id": id, "as": other, "approved": true}
		got := c.does("answer", map[string]any{"answers": []any{yes}})
		if got.Status != "error" || !strings.Contains(got.Error, "stale_view") {
			t.Errorf("it is answered %s", got)
		}
		sent(t, w, 0)
	})
}

// TestPageReloaded checks that a page gets its card back, whether or not it kept its messages.
func TestPageReloaded(t *testing.T) {
	each(t, func(t *testing.T, w *testkit.Deployment, c *client) {
		chatclients.Mails(w, "bob@example.com")
		c.says("mail bob")
		want(t, c.does("reload", map[string]any{"keep": true}), waitsForBob)
		asked := c.does("reload", nil)
		want(t, asked, strings.TrimPrefix(waitsForBob, "user: mail bob; "))
		want(t, c.answers(asked, true), sentToBob)
		want(t, c.does("reload", nil), "")
		sent(t, w, 1)
	})
}

// TestDecisionFromTwoTabs has both tabs answer the card. One of them gets the result from the other's run.
func TestDecisionFromTwoTabs(t *testing.T) {
	each(t, func(t *testing.T, w *testkit.Deployment, c *client) {
		chatclients.Mails(w, "bob@example.com")
		asked := c.says("mail bob")
		other, late := connect(t, w, chatclients.AI7, "ana", "chat"), connect(t, w, chatclients.AI6, "ana", "chat")
		there, lateCard := other.does("reload", nil), late.does("reload", nil)
		want(t, c.answers(asked, true), "user: mail bob; "+sentToBob)
		want(t, other.answers(there, true), sentToBob)
		no := late.answers(lateCard, false)
		if no.Status != "error" || !strings.Contains(no.Error, "already_resolved") {
			t.Errorf("the no that came after the yes is answered %s", no)
		}
		sent(t, w, 1)
	})
}

// TestChatIDOfOtherUser checks that another user with the same chat ID has a separate conversation.
func TestChatIDOfOtherUser(t *testing.T) {
	each(t, func(t *testing.T, w *testkit.Deployment, c *client) {
		chatclients.Mails(w, "bob@example.com")
		c.says("mail bob")
		eve := connect(t, w, chatclients.AI7, "eve", "chat")
		want(t, eve.does("reload", nil), "")
		w.SetModel(testkit.Says("Hello."))
		want(t, eve.says("hello"), "user: hello; run completed; assistant: Hello.")
		sent(t, w, 0)
	})
}

// TestApprovedElsewhere approves in the console while the client's stream is open for another call in progress.
func TestApprovedElsewhere(t *testing.T) {
	each(t, func(t *testing.T, w *testkit.Deployment, c *client) {
		type none struct{}
		release := make(chan struct{})
		testkit.Offer(&w.App.API.Loop.Env, tool.Define(tool.Def[none, none]{Name: "slow", Description: "Takes long.",
			Execute: func(ctx context.Context, _ tool.Call, _ none) (none, error) {
				select {
				case <-release:
				case <-ctx.Done():
				}
				return none{}, ctx.Err()
			}}))
		w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
			if len(r.Responses()) > 0 {
				return fakegemini.Turn{Text: "That is what came of it."}
			}
			return fakegemini.Turn{Calls: []fakegemini.Call{
				{Name: "gmail_send", Args: testkit.Mail("bob@example.com", "s", "b")}, {Name: "slow", Args: none{}}}}
		})
		told := make(chan chat)
		go func() { told <- c.says("mail bob") }()
		ana, err := w.As(t.Context(), "ana")
		if err != nil {
			t.Error(err)
		}
		var pending testkit.Answer
		for len(pending.Approvals) == 0 && t.Context().Err() == nil {
			if pending, err = ana(t.Context(), "GET", "/api/agent/approvals/pending", nil); err != nil {
				t.Error(err)
			}
		}
		if a, err := w.Resolve(t.Context(), "ana", pending.Approvals[0], "approve_once"); err != nil || a.HTTP != 200 {
			t.Errorf("%v, %d %s; want a.HTTP 200", err, a.HTTP, a.Body)
		}
		close(release)
		want(t, <-told, "user: mail bob; run completed; gmail_send output-available; slow output-available; "+
			"assistant: That is what came of it.")
		sent(t, w, 1)
	})
}

// TestStreamCut breaks the connection after each event of a stream, and resumes: with the resume request while the run
// waits, and with the client's retry.
func TestStreamCut(t *testing.T) {
	each(t, func(t *testing.T, w *testkit.Deployment, _ *client) {
		chatclients.Mails(w, "bob@example.com")
		release := releases[strings.ReplaceAll(t.Name()[strings.LastIndex(t.Name(), "/")+1:], "_", " ")]
		whole := connect(t, w, release, "ana", "whole")
		asked := whole.says("mail bob")
		done := whole.answers(asked, true)
		n := 1
		for cut := 1; cut < asked.Events; cut++ {
			c := connect(t, w, release, "ana", fmt.Sprint("asked", cut))
			if got := c.does("send", map[string]any{"text": "mail bob", "cut": cut}); got.Status != "error" {
				t.Fatalf("cut after %d of %d events it reads %s", cut, asked.Events, got)
			}
			again := c.does("resume", nil)
			want(t, again, asked.String())
			want(t, c.answers(again, true), done.String())
			n++
		}
		for cut := 1; cut < done.Events; cut++ {
			c := connect(t, w, release, "ana", fmt.Sprint("done", cut))
			id := c.says("mail bob").asks()[0].Approval.ID
			yes := map[string]any{"id": id, "approved": true}
			got := c.does("answer", map[string]any{"cut": cut, "answers": []any{yes}})
			if got.Status == "error" { // the stream ended exactly here
				got = c.does("retry", nil)
			}
			want(t, got, done.String())
			n++
		}
		sent(t, w, n)
	})
}
