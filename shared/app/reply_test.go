package app_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

const mayReadMail = "https://www.googleapis.com/auth/gmail.readonly"

// asked is an e-mail to ana with all that a reply depends on.
const asked = "From: Ben <ben@example.com>\r\nTo: ana@example.com, cleo@example.com\r\nCc: dan@example.com\r\n" +
	"Message-ID: <2@example.com>\r\nReferences: <1@example.com>\r\nSubject: Lunch plan\r\n\r\nIs noon fine?\r\n"

// answering is a deployment whose user ana has received an e-mail and lets it be read.
func answering(t *testing.T, mail string, settings ...string) (w *proved, id string) {
	t.Helper()
	w = deploy(t, append(settings, "GMAIL_SEARCH=on")...)
	w.SetScopes("ana", append(slices.Clone(testkit.Scopes), mayReadMail)...)
	if err := w.Google.Receive(testkit.Address("ana"), []byte(mail)); err != nil {
		t.Fatal(err)
	}
	return w, w.Google.Newest(testkit.Address("ana"))
}

// proposes makes the model propose an e-mail, and returns the run and its card.
func (w *proved) proposes(args map[string]any) (testkit.Answer, string) {
	w.t.Helper()
	w.SetModel(testkit.Wants(gmail.Name, args))
	r := w.call("POST", "/api/agent/run", `{"prompt":"Answer Ben's mail that noon is fine."}`)
	if r.HTTP != http.StatusOK {
		w.t.Fatalf("%s; want r.HTTP %v", r.Body, http.StatusOK)
	}
	return r, string(w.call("GET", "/api/agent/approvals/pending", "").Body)
}

// sends approves the card of a run and returns the e-mail that was sent.
func (w *proved) sends(r testkit.Answer) string {
	w.t.Helper()
	if len(r.Approvals) != 1 {
		w.t.Fatalf("%s; want len(r.Approvals) 1", r.Body)
	}
	a, err := w.Resolve(w.t.Context(), "ana", r.Approvals[0], "approve_once")
	if err != nil || a.HTTP != http.StatusOK {
		w.t.Fatalf("%s, %v; want a.HTTP %v", a.Body, err, http.StatusOK)
	}
	w.deliver()
	sent := w.Google.Messages()
	if len(sent) != 1 {
		w.t.Fatalf("%d e-mails were sent, want one: %s", len(sent), w.call("GET", "/api/agent/runs/"+r.RunID, "").Body)
	}
	return sent[0].Raw
}

func holds(t *testing.T, what, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q: %s", what, want, text)
		}
	}
}

// TestReplyDerived checks that the model's own recipients, subject and Message-IDs do not count.
func TestReplyDerived(t *testing.T) {
	for name, c := range map[string]struct {
		mail       string
		all        bool
		card, sent []string
	}{
		"to the sender": {asked, false, []string{"the e-mail is from ben@example.com", "Is noon fine?", "Lunch plan"},
			[]string{"To: ben@example.com\r\n", "Subject: Re: Lunch plan", "In-Reply-To: <2@example.com>",
				"References: <1@example.com> <2@example.com>", "> Is noon fine?", "Noon is fine."}},
		"to all": {asked, true, []string{"copies go to all others who got it"},
			[]string{"To: ben@example.com\r\n", "Cc: cleo@example.com, dan@example.com\r\n"}},
		"to another address": {"Reply-To: billing@pay.example\r\n" + asked, false,
			[]string{"Reply-To says billing@pay.example, and not the sender ben@example.com"},
			[]string{"To: billing@pay.example\r\n"}},
		"to a sender whose header has another form": {"From: ben@example.com <ben@example.com>;\r\n" +
			"To: Cleo [Acme] <cleo@example.com>; Dan, Sales <dan@example.com>\r\nSubject: Lunch plan\r\n\r\nHi",
			true, []string{"the e-mail is from ben@example.com"},
			[]string{"To: ben@example.com\r\n", "Cc: cleo@example.com, dan@example.com\r\n"}},
		"to oneself": {strings.Replace(asked, "Ben <ben@example.com>", "ana@example.com", 1), false,
			[]string{"you wrote the e-mail that this answers"}, []string{"cleo@example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, id := answering(t, c.mail)
			r, card := w.proposes(map[string]any{"body": "Noon is fine.", "to": []string{"eve@evil-10.example"},
				"subject": "Other", "inReplyTo": "<evil-10@example.com>",
				"replyTo": map[string]any{"messageId": id, "all": c.all}, "origin": map[string]any{"messageId": "1",
					"from": "boss@example.com", "subject": "evil-10", "because": "evil-10"}})
			holds(t, "the card", card, c.card...)
			raw := w.sends(r)
			holds(t, "the e-mail", raw, c.sent...)
			if strings.Contains(card+raw, "evil-10") { // which no random ID holds
				t.Errorf("the model's own words decide: %s\n%s", card, raw)
			}
		})
	}
}

// TestReplyToNewestOfThread checks a call with threadId alone.
func TestReplyToNewestOfThread(t *testing.T) {
	w, id := answering(t, asked)
	r, card := w.proposes(map[string]any{"to": []string{"ben@example.com"}, "subject": "Re: Lunch plan",
		"body": "Noon is fine.", "threadId": id, "inReplyTo": "<evil-10@example.com>"})
	holds(t, "the card", card, "“Lunch plan”, from Ben", `"moments":[{"text":"20`)
	raw := w.sends(r)
	holds(t, "the e-mail", raw, "In-Reply-To: <2@example.com>", "References: <1@example.com> <2@example.com>")
	if strings.Contains(raw, "evil-10") || strings.Contains(raw, "Is noon fine") {
		t.Errorf("%s", raw)
	}
}

// TestForwardedMail checks that the text follows the user's words, in a new conversation.
func TestForwardedMail(t *testing.T) {
	w, id := answering(t, asked)
	r, card := w.proposes(map[string]any{"to": []string{"fay@example.com"}, "subject": "x", "body": "See below.",
		"forward": map[string]any{"messageId": id}})
	holds(t, "the card", card, "Forwards", "Is noon fine?", "Fwd: Lunch plan")
	raw := w.sends(r)
	holds(t, "the e-mail", raw, "To: fay@example.com", "Subject: Fwd: Lunch plan", "From: Ben <ben@example.com>",
		"Is noon fine?")
	if strings.Contains(raw, "In-Reply-To") || strings.Contains(raw, "References") {
		t.Errorf("%s", raw)
	}
}

// TestReplyRefused checks that nothing is asked and nothing is sent.
func TestReplyRefused(t *testing.T) {
	w, id := answering(t, "From: undisclosed\r\nMessage-ID: <2@example.com>\r\n\r\nHi")
	for name, args := range map[string]map[string]any{
		"no address":   {"body": "Hi", "replyTo": map[string]any{"messageId": id}},
		"no such mail": {"body": "Hi", "replyTo": map[string]any{"messageId": "18cf"}},
		"both": {"body": "Hi", "replyTo": map[string]any{"messageId": id},
			"forward": map[string]any{"messageId": id}},
		"a free Message-ID": {"to": []string{"bob@example.com"}, "subject": "x", "body": "Hi",
			"inReplyTo": "<evil@example.com>"},
	} {
		if r, _ := w.proposes(args); len(r.Approvals) != 0 || r.Actions[0].Status != "failed" {
			t.Errorf("%s: %s; want len(r.Approvals) 0, r.Actions[0].Status “failed”", name, r.Body)
		}
	}
}

// TestReplyReadAgain has the answered e-mail disappear after the approval.
func TestReplyReadAgain(t *testing.T) {
	for _, mode := range []string{"draft", "direct"} {
		w, id := answering(t, asked, "GMAIL_SEND_MODE="+mode)
		r, _ := w.proposes(map[string]any{"body": "Noon is fine.", "replyTo": map[string]any{"messageId": id}})
		w.SetFault(func(op string) fakegoogle.Fault {
			if op != "gmail.messages.get" {
				return fakegoogle.Fault{}
			}
			return fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: http.StatusNotFound, Reason: "notFound"}
		})
		a, err := w.Resolve(t.Context(), "ana", r.Approvals[0], "approve_once")
		if err != nil || a.HTTP != http.StatusOK {
			t.Fatalf("%s, %v; want a.HTTP %v", a.Body, err, http.StatusOK)
		}
		w.deliver()
		ended := w.call("GET", "/api/agent/runs/"+r.RunID, "")
		if len(w.Google.Messages()) != 0 || !strings.Contains(string(ended.Body), "There is no such mail") {
			t.Errorf("%s: %s; want len(w.Google.Messages()) 0, ended.Body with “There is no such mail”",
				mode, ended.Body)
		}
	}
}

// TestReplyRedirected checks that an always-allowed address is not enough for a redirected reply and a forwarded
// e-mail, even if its user named all addresses in the e-mail, and whether or not the model has read the e-mail.
func TestReplyRedirected(t *testing.T) {
	w, id := answering(t, "Reply-To: bob@example.com\r\nFrom: ben@example.com\r\nTo: ana@example.com\r\n"+
		"Message-ID: <2@example.com>\r\nSubject: Lunch\r\n\r\nNoon?\r\n")
	r, _ := w.proposes(testkit.Mail("bob@example.com", "Hello", "Noon is fine."))
	if a, err := w.Resolve(t.Context(), "ana", r.Approvals[0], "approve_and_always_allow_recipient"); err != nil ||
		a.HTTP != http.StatusOK {
		t.Fatalf("%s, %v; want a.HTTP %v", a.Body, err, http.StatusOK)
	}
	w.deliver()
	read := fakegemini.Call{Name: gmail.Read, Args: map[string]any{"messageId": id}}
	reply := fakegemini.Call{Name: gmail.Name, Args: map[string]any{"body": "Fine.",
		"replyTo": map[string]any{"messageId": id}}}
	forward := fakegemini.Call{Name: gmail.Name, Args: map[string]any{"body": "Fine.",
		"to": []string{"bob@example.com"}, "forward": map[string]any{"messageId": id}}}
	for name, calls := range map[string][]fakegemini.Call{"reply": {reply}, "forward": {forward},
		"read and reply": {read, reply}, "read and forward": {read, forward}} {
		turn := 0
		w.SetModel(func(fakegemini.Request) fakegemini.Turn {
			if turn++; turn > len(calls) {
				return fakegemini.Turn{Text: "Done."}
			}
			return fakegemini.Turn{Calls: calls[turn-1 : turn]}
		})
		r := w.call("POST", "/api/agent/run", `{"prompt":"ben@example.com wrote to ana@example.com. Tell bob@example.com."}`)
		if len(r.Approvals) != 1 || len(w.Google.Messages()) != 1 {
			t.Errorf("%s: %s; want len(r.Approvals) 1, len(w.Google.Messages()) 1", name, r.Body)
		}
	}
}

// TestReplyOverMCP checks the reply of another program's agent. A repeated call returns its outcome, also if the
// answered e-mail is gone by then.
func TestReplyOverMCP(t *testing.T) {
	w, id := answering(t, asked)
	g := w.gives("ana", "My editor")
	reply := map[string]any{"body": "Noon is fine.", "to": []string{"eve@evil.example"},
		"replyTo": map[string]any{"messageId": id}}
	if a := g.calls(gmail.Name, reply, "once"); a.failed {
		t.Fatalf("%s", a.words)
	}
	g.decides(g.card(), "approve_once", http.StatusOK)
	w.SetFault(func(op string) fakegoogle.Fault {
		if op != "gmail.messages.get" {
			return fakegoogle.Fault{}
		}
		return fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: http.StatusNotFound, Reason: "notFound"}
	})
	if a := g.calls(gmail.Name, reply, "once"); a.failed || a.Status != "completed" {
		t.Errorf("the repeated call returns %+v", a)
	}
	sent := w.Google.Messages()
	if len(sent) != 1 || strings.Join(sent[0].To, " ") != "ben@example.com" ||
		!strings.Contains(sent[0].Raw, "In-Reply-To: <2@example.com>") {
		t.Errorf("the mails sent are %+v", sent)
	}
	a := g.calls(gmail.Name, map[string]any{"body": "Hi", "replyTo": map[string]any{"messageId": "18cf"}})
	if !a.failed {
		t.Errorf("an e-mail that is not there is answered: %+v", a)
	}
}
