package agui_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/chatclients"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A client is AG-UI's HttpAgent in Node (testdata/client.mjs).
type client struct {
	*chatclients.Driver
	t *testing.T
}

// agent is the state of the client's agent.
type agent struct {
	Error      string
	Events     []string
	Wrong      []string
	Messages   []message
	Interrupts []interrupt
	Pending    []string // IDs of the calls left to the page
	State      struct {
		Mine        int
		Countersign struct{ RunID, ThreadID, Status, Record string }
	}
}

type message struct {
	ID, Role  string
	Content   words
	ToolCalls []struct {
		ID       string
		Function struct{ Name, Arguments string }
	}
}

type interrupt struct {
	ID, Reason, Message, ToolCallID, ExpiresAt string
	ResponseSchema                             struct {
		Properties struct {
			Decision struct{ Enum []string }
			ArgsHash struct{ Const string }
		}
	}
	Metadata struct{ Countersign testkit.Approval }
}

// words are a message's content: a text, or parts.
type words string

// UnmarshalJSON reads the text of all parts. A file is read as [file].
func (w *words) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, (*string)(w)) == nil {
		return nil
	}
	var parts []struct{ Type, Text string }
	err := json.Unmarshal(data, &parts)
	for _, p := range parts {
		if p.Type != "text" {
			p.Text = " [file]"
		}
		*w += words(p.Text)
	}
	return err
}

// connect starts a client for the user. thread is the client's own ID for the conversation.
func connect(t *testing.T, w *testkit.Deployment, uid, thread string) *client {
	t.Helper()
	modules := chatclients.Modules(t)
	token, err := w.SignIn(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	return &client{chatclients.Drive(t, "testdata/client.mjs", "AGUI="+filepath.Join(modules, chatclients.AGUI),
		"SCHEMAS="+filepath.Join(modules, "@ag-ui/core/dist/schemas.mjs"), "URL_OF_AGUI="+w.Base+"/api/agent/agui",
		"TOKEN="+token, "THREAD="+thread), t}
}

// does performs an action of the user and returns the new state. Every stream that is neither cut nor refused must
// start once and end once.
func (c *client) does(what string, with map[string]any) (now agent) {
	c.t.Helper()
	c.Do(what, with, &now)
	if len(now.Wrong) > 0 {
		c.t.Errorf("%s: the client warns of %q", what, now.Wrong)
	}
	if with["cut"] != nil || len(now.Events) == 0 {
		return now
	}
	ends := 0
	for _, e := range now.Events {
		if e == "RUN_FINISHED" || e == "RUN_ERROR" {
			ends++
		}
	}
	last := now.Events[len(now.Events)-1]
	if now.Events[0] != "RUN_STARTED" || ends != 1 || last != "RUN_FINISHED" && last != "RUN_ERROR" {
		c.t.Errorf("%s: it is told %q", what, now.Events)
	}
	return now
}

func (c *client) says(text string) agent {
	c.t.Helper()
	return c.does("say", map[string]any{"text": text})
}

// resolves returns an answer to the interrupt, with more fields in its payload.
func (i interrupt) resolves(decision string, more ...any) map[string]any {
	payload := map[string]any{"decision": decision, "argsHash": i.ResponseSchema.Properties.ArgsHash.Const}
	for at := 0; at < len(more); at += 2 {
		payload[more[at].(string)] = more[at+1]
	}
	return map[string]any{"interruptId": i.ID, "status": "resolved", "payload": payload}
}

func (c *client) answers(with ...any) agent {
	c.t.Helper()
	return c.does("answer", map[string]any{"resume": with})
}

// asked returns the only interrupt.
func (now agent) asked(t *testing.T) interrupt {
	t.Helper()
	if len(now.Interrupts) != 1 {
		t.Fatalf("it is asked %v: %s", now.Interrupts, now)
	}
	return now.Interrupts[0]
}

// String summarises the conversation.
func (now agent) String() string {
	var said []string
	for _, m := range now.Messages {
		if m.Content != "" && m.Role != "tool" {
			said = append(said, m.Role+": "+string(m.Content))
		}
		for _, c := range m.ToolCalls {
			var args struct{ To []string }
			_ = json.Unmarshal([]byte(c.Function.Arguments), &args)
			said = append(said, strings.TrimSuffix(fmt.Sprintf("%s to %s", c.Function.Name, strings.Join(args.To, ",")),
				" to "))
		}
		if m.Role == "tool" && strings.HasPrefix(string(m.Content), "{") {
			said = append(said, "done")
		} else if m.Role == "tool" {
			said = append(said, "told: "+string(m.Content))
		}
	}
	for _, i := range now.Interrupts {
		said = append(said, "asks: "+i.Metadata.Countersign.Tool)
	}
	if now.Error != "" {
		said = append(said, "error: "+now.Error)
	}
	return strings.Join(said, "; ")
}

func want(t *testing.T, now agent, text string) {
	t.Helper()
	if got := now.String(); got != text {
		t.Errorf("it reads\n%s\nwant\n%s", got, text)
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
	wantsBob  = "user: mail bob; gmail_send to bob@example.com"
	waits     = wantsBob + "; asks: gmail_send"
	whatCame  = "assistant: That is what came of it."
	sentToBob = wantsBob + "; done; " + whatCame
)

// both opens Countersign with a model that wants to e-mail Bob, and a client of ana's.
func both(t *testing.T) (*testkit.Deployment, *client) {
	w := chatclients.Open(t)
	chatclients.Mails(w, "bob@example.com")
	return w, connect(t, w, "ana", "mine")
}

func TestMailApproved(t *testing.T) {
	w, c := both(t)
	w.SetModel(testkit.Says("Hello."))
	now := c.says("hello")
	want(t, now, "user: hello; assistant: Hello.")
	if now.State.Countersign.Status != "completed" {
		t.Errorf("its state is %+v", now.State)
	}
	chatclients.Mails(w, "bob@example.com")
	now = c.says("mail bob")
	want(t, now, "user: hello; assistant: Hello.; "+waits)
	i := now.asked(t)
	if i.Reason != "tool_call" || !strings.Contains(i.Message, "bob@example.com") || i.ExpiresAt == "" ||
		i.ToolCallID != now.Messages[len(now.Messages)-1].ToolCalls[0].ID {
		t.Errorf("it is asked %+v", i)
	}
	want(t, c.answers(i.resolves("approve_once")), "user: hello; assistant: Hello.; "+sentToBob)
	sent(t, w, 1)
	// a page that kept its messages also keeps the calls that it shows
	want(t, c.does("reload", map[string]any{"keep": true}), "user: hello; assistant: Hello.; "+sentToBob)
	want(t, c.does("reload", nil), "user: hello; assistant: Hello.; user: mail bob; "+
		"assistant: Waiting for your approval: Send an e-mail to one person; "+whatCame)
}

func TestMailDenied(t *testing.T) {
	w, c := both(t)
	want(t, c.answers(c.says("mail bob").asked(t).resolves("reject", "comment", "not now")), wantsBob+
		"; told: Its user said no, so it was not done.; assistant: You rejected this, so it was not done.")
	sent(t, w, 0)
}

func TestMailEdited(t *testing.T) {
	w, c := both(t)
	i := c.says("mail bob").asked(t)
	edited := testkit.Mail("eve@example.com", "s", "b")
	want(t, c.answers(i.resolves("approve_with_edits", "editedArgs", edited)),
		strings.Replace(sentToBob, "bob@", "eve@", 1)+"; assistant: On record:\nSent “s” to eve@example.com.")
	sent(t, w, 1)
}

// TestDecisionRefused checks that the client can continue after a refused answer, because it still has the open
// interrupts.
func TestDecisionRefused(t *testing.T) {
	w, c := both(t)
	i := c.says("mail bob").asked(t)
	refused := func(with any, status, events string) agent {
		t.Helper()
		now := c.answers(with)
		if told := strings.Join(now.Events, " "); !strings.Contains(now.Error, status) ||
			!strings.HasPrefix(told, events) {
			t.Errorf("%v is answered %s, %q", with, now, told)
		}
		return now
	}
	other := strings.Repeat("0", len(i.ResponseSchema.Properties.ArgsHash.Const))
	want(t, refused(i.resolves("approve_once", "argsHash", other), "", "RUN_STARTED CUSTOM countersign.refused"), waits)
	refused(i.resolves("approve_once", "argsHash", nil), "HTTP 400", "")
	refused(i.resolves("whatever"), "HTTP 400", "")
	refused(i.resolves("approve_with_edits"), "HTTP 400", "")
	sent(t, w, 0)
	want(t, c.answers(map[string]any{"interruptId": i.ID, "status": "cancelled"}), waits)
	want(t, c.answers(i.resolves("approve_once")), sentToBob)
	want(t, refused(i.resolves("reject"), "", "RUN_STARTED CUSTOM countersign.refused"), sentToBob)
	want(t, c.answers(i.resolves("approve_once")), sentToBob) // a repeat of the answer
	eve := connect(t, w, "eve", "mine")
	if now := eve.answers(i.resolves("approve_once")); !strings.Contains(now.Error, "HTTP 404") {
		t.Errorf("another user is answered %s", now)
	}
	sent(t, w, 1)
}

// TestPageReloaded checks that a page gets its interrupt back, whether or not it kept its messages, and that its own
// state survives.
func TestPageReloaded(t *testing.T) {
	w, c := both(t)
	c.says("mail bob")
	want(t, c.does("reload", map[string]any{"keep": true}), waits)
	now := c.does("reload", nil)
	want(t, now, waits)
	if told := strings.Join(now.Events, " "); now.State.Mine != 1 ||
		told != "RUN_STARTED STATE_SNAPSHOT MESSAGES_SNAPSHOT RUN_FINISHED" {
		t.Errorf("it is told %s, its state is %+v", told, now.State)
	}
	want(t, c.answers(now.asked(t).resolves("approve_once")), sentToBob)
	sent(t, w, 1)
}

// TestThreadOfOtherUser checks that the same ID names another thread for another user.
func TestThreadOfOtherUser(t *testing.T) {
	w, c := both(t)
	ana := c.says("mail bob")
	eve := connect(t, w, "eve", "mine")
	want(t, eve.does("reload", nil), "")
	w.SetModel(testkit.Says("Hello."))
	now := eve.does("say", map[string]any{"text": "hello", "runId": "first"})
	want(t, now, "user: hello; assistant: Hello.")
	if now.State.Countersign.ThreadID == ana.State.Countersign.ThreadID {
		t.Error("they share a thread")
	}
	sent(t, w, 0)
}

// TestRequestRepeated checks that a repeated request is the same run. With other words it is refused.
func TestRequestRepeated(t *testing.T) {
	w, c := both(t)
	with := map[string]any{"text": "mail bob", "runId": "first"}
	now := c.does("say", with)
	want(t, c.does("reload", nil), waits)
	tab := connect(t, w, "ana", "mine")
	again := tab.does("say", with)
	want(t, again, waits)
	if again.State.Countersign.RunID != now.State.Countersign.RunID {
		t.Error("it is another run")
	}
	if now = connect(t, w, "ana", "mine").does("say", map[string]any{"text": "mail eve", "runId": "first"}); !strings.
		Contains(now.Error, "HTTP 409") {
		t.Errorf("other words are answered %s", now)
	}
	want(t, tab.answers(again.asked(t).resolves("approve_once")), sentToBob)
	sent(t, w, 1)
}

// TestDecidedElsewhere approves in the console. The page shows that when it reloads and when it answers.
func TestDecidedElsewhere(t *testing.T) {
	w, c := both(t)
	i := c.says("mail bob").asked(t)
	tab := connect(t, w, "ana", "mine")
	want(t, tab.does("reload", nil), waits)
	if a, err := w.Resolve(t.Context(), "ana", i.Metadata.Countersign, "approve_once"); err != nil || a.HTTP != 200 {
		t.Fatalf("%v, %d %s; want a.HTTP 200", err, a.HTTP, a.Body)
	}
	want(t, c.answers(i.resolves("reject")), sentToBob)
	want(t, tab.answers(i.resolves("approve_once")), sentToBob)
	sent(t, w, 1)
}

func TestRunFails(t *testing.T) {
	w, c := both(t)
	w.SetModel(testkit.Says(""))
	now := c.says("hello")
	if now.Error == "" || now.Events[len(now.Events)-1] != "RUN_ERROR" {
		t.Errorf("it reads %s, told %q", now, now.Events)
	}
	w.SetModel(testkit.Says("Hello."))
	if now = c.says("hello"); now.Error != "" || !strings.HasSuffix(now.String(), "assistant: Hello.") {
		t.Errorf("it goes on with %s", now)
	}
}

// TestStreamCut breaks the connection after each event of a stream, and resumes with the same request.
func TestStreamCut(t *testing.T) {
	w, c := both(t)
	asked := c.says("mail bob")
	done := c.answers(asked.asked(t).resolves("approve_once"))
	n := 1
	for cut := 1; cut < len(asked.Events); cut++ {
		c := connect(t, w, "ana", fmt.Sprint("asked", cut))
		if now := c.does("say", map[string]any{"text": "mail bob", "cut": cut}); now.Error == "" {
			t.Fatalf("cut after %d events it reads %s", cut, now)
		}
		again := c.does("retry", nil)
		want(t, again, waits)
		want(t, c.answers(again.asked(t).resolves("approve_once")), done.String())
		n++
	}
	for cut := 1; cut < len(done.Events); cut++ {
		c := connect(t, w, "ana", fmt.Sprint("done", cut))
		yes := c.says("mail bob").asked(t).resolves("approve_once")
		now := c.does("answer", map[string]any{"resume": []any{yes}, "cut": cut})
		if now.Error != "" { // the stream ended exactly here
			now = c.does("retry", nil)
		}
		want(t, now, done.String())
		n++
	}
	sent(t, w, n)
}
