package app_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

func TestMailApproved(t *testing.T) {
	w := deploy(t)
	w.mail()
	r := w.ask()
	if r.Status != "awaiting_confirmation" || len(w.Google.Messages()) != 0 {
		t.Fatalf("%+v; want r.Status “awaiting_confirmation”, len(w.Google.Messages()) 0", r)
	}
	got := w.approve(r)
	if got.Status != "completed" || got.Actions[0].ExecutionStatus != "succeeded" || len(w.Google.Messages()) != 1 {
		t.Fatalf("%+v, %d messages", got, len(w.Google.Messages()))
	}
	w.deliver()
	if len(w.Google.Messages()) != 1 {
		t.Fatal("it was sent again")
	}
	for _, secret := range []string{"CANARY-body", "bob@example.com", "ana@example.com", "a-key-of-the-fake-gemini"} {
		if strings.Contains(w.Logs.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

// once is a fault at the first call of the operation.
func once(op string, f fakegoogle.Fault) func(string) fakegoogle.Fault {
	struck := false
	return func(asked string) fakegoogle.Fault {
		if asked != op || struck {
			return fakegoogle.Fault{}
		}
		struck = true
		return f
	}
}

// retryLater is Gmail's answer to an account that has sent too much.
const retryLater = "User-rate limit exceeded.  Retry after 2126-11-28T05:01:02.345Z"

// TestProviderFaults makes Gmail and Calendar fail around the effect, and compares the recorded events with what they
// did.
func TestProviderFaults(t *testing.T) {
	const send, sendDirect, insert = "gmail.drafts.send", "gmail.messages.send", "calendar.events.insert"
	for name, c := range map[string]struct {
		mode, op  string
		fault     fakegoogle.Fault
		effects   int
		execution string // of the action
		class     string // of its error
		kind      string // kind of what waits afterwards
	}{
		"sent, then 503": {"draft", send, fakegoogle.Fault{Kind: fakegoogle.StatusAfter}, 1, "unknown",
			"ToolExecutionError", "review"},
		"sent, then cut off": {"draft", send, fakegoogle.Fault{Kind: fakegoogle.ResetAfter}, 1, "unknown",
			"ToolExecutionError", "review"},
		"sent, empty answer": {"draft", send, fakegoogle.Fault{Kind: fakegoogle.EmptyAfter}, 1, "unknown",
			"ToolExecutionError", "review"},
		"503, then sent": {"draft", send, fakegoogle.Fault{Kind: fakegoogle.StatusBefore}, 1,
			"succeeded", "", ""},
		"cut off, then sent": {"draft", send, fakegoogle.Fault{Kind: fakegoogle.ResetBefore}, 1, "succeeded",
			"", ""},
		"limited, then sent": {"draft", send, fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: 429,
			Reason: "rateLimitExceeded"}, 1, "succeeded", "", ""},
		"limited for a long time, by its message": {"draft", send, fakegoogle.Fault{Kind: fakegoogle.StatusBefore,
			Status: 429, Reason: "rateLimitExceeded", Text: retryLater}, 0, "failed", "ToolExecutionError", ""},
		"limited for a long time, on the draft": {"draft", "gmail.drafts.create", fakegoogle.Fault{
			Kind: fakegoogle.StatusBefore, Status: 403, Reason: "userRateLimitExceeded", Text: retryLater},
			0, "not_started", "ToolExecutionError", ""},
		"at the day's limit, then sent": {"draft", send, fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: 429,
			Reason: "dailyLimitExceeded"}, 1, "succeeded", "", ""},
		"refused": {"draft", send, fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: 400,
			Reason: "invalidArgument"}, 0, "failed", "ToolExecutionError", ""},
		"not signed in": {"draft", send, fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: 401,
			Reason: "authError"}, 0, "failed", "AuthError", ""},
		"draft edited": {"draft", "gmail.drafts.get", fakegoogle.Fault{Kind: fakegoogle.DraftEdited},
			0, "failed", "PolicyError", ""},
		"direct: sent, then 503": {"direct", sendDirect, fakegoogle.Fault{Kind: fakegoogle.StatusAfter}, 1,
			"unknown", "ToolExecutionError", "review"},
		"direct: 503": {"direct", sendDirect, fakegoogle.Fault{Kind: fakegoogle.StatusBefore}, 0,
			"unknown", "ToolExecutionError", "review"},
		"event made, then 500": {"event", insert, fakegoogle.Fault{Kind: fakegoogle.StatusAfter, Status: 500},
			1, "succeeded", "", ""},
		"event made, then cut off": {"event", insert, fakegoogle.Fault{Kind: fakegoogle.ResetAfter}, 1,
			"succeeded", "", ""},
		"500, then the event": {"event", insert, fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: 500},
			1, "succeeded", "", ""},
		"event refused": {"event", insert, fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: 403,
			Reason: "forbidden"}, 0, "failed", "ToolExecutionError", ""},
		"a secret in an error's body": {"draft", send, fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: 400,
			Text: "Bearer ya29.SECRET"}, 0, "failed", "ToolExecutionError", ""},
	} {
		t.Run(name, func(t *testing.T) {
			mode := c.mode
			if mode == "event" {
				mode = "draft"
			}
			w := deploy(t, "GMAIL_SEND_MODE="+mode)
			w.mail()
			if c.mode == "event" {
				w.event()
			}
			r := w.ask()
			w.SetFault(once(c.op, c.fault))
			got := w.approve(r)
			a := got.Actions[0]
			if n := len(w.Google.Messages()) + len(w.Google.Events()); n != c.effects ||
				a.ExecutionStatus != c.execution || a.ErrorCode != c.class {
				t.Errorf("%d effects, %+v", n, a)
			}
			if c.fault.Text == retryLater && !strings.Contains(a.Message, "after 05:01 UTC on 28 November 2126") {
				t.Errorf("the user is not told until when: %q", a.Message)
			}
			if until := slices.ContainsFunc(a.Moments, func(m tool.Moment) bool {
				return m.At == "2126-11-28T05:01:02Z" || m.At == "2126-11-28T05:01:00Z"
			}); until != (c.fault.Text == retryLater) {
				t.Errorf("the times of %q are %v", a.Message, a.Moments)
			}
			if kind := pendingKind(w); kind != c.kind {
				t.Errorf("%q waits, want %q", kind, c.kind)
			}
			if strings.Contains(w.Logs.String(), "ya29") || strings.Contains(got.Message+a.Message, "ya29") {
				t.Error("a secret of the provider was shown")
			}
		})
	}
}

// TestClosingAnswerUnusable makes the model end unusably after an e-mail was sent. It is asked again within its limit,
// and the run completes from the record.
func TestClosingAnswerUnusable(t *testing.T) {
	for name, closing := range map[string]fakegemini.Turn{
		"thoughts alone": {Thought: "It was sent."}, "nothing": {}, "a new reason": {Finish: "MALFORMED_RESPONSE"},
		"half an answer": {Text: "It was", Finish: "SOME_NEW_REASON"},
	} {
		t.Run(name, func(t *testing.T) {
			w := deploy(t)
			w.mail()
			r := w.ask()
			asked := 0
			w.SetModel(func(fakegemini.Request) fakegemini.Turn {
				asked++
				return closing
			})
			got := w.approve(r)
			if sent := w.Google.Messages(); len(sent) != 1 || got.Status != "completed" || asked != 2 ||
				strings.Contains(got.Summary, "It was sent.") || got.Summary == "" {
				t.Errorf("%d e-mails, asked %d times: %s", len(sent), asked, got.Body)
			}
		})
	}
}

// TestClosingAnswerMissing makes the model fail after an e-mail was sent. The run completes from the record, so that no
// client repeats it. Without the e-mail it fails.
func TestClosingAnswerMissing(t *testing.T) {
	for name, closing := range map[string]fakegemini.Turn{
		"withheld": {Finish: "RECITATION"}, "cut off": {Text: "It was", Finish: "MAX_TOKENS"},
		"filtered by a gateway": {Text: "It", Finish: "content_filter"}, "the prompt is blocked": {Block: "OTHER"},
		"refused": {Status: 403}, "a page": {Body: "<html>"}, "nothing": {Body: "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			w := deploy(t)
			w.mail()
			r := w.ask()
			w.SetModel(func(fakegemini.Request) fakegemini.Turn { return closing })
			got := w.approve(r)
			if len(w.Google.Messages()) != 1 || got.Status != "completed" || got.ErrorCode != "" ||
				!strings.HasPrefix(got.Summary, "Sent “s” to bob@example.com.\nThe model gave no closing answer: ") ||
				strings.Contains(got.Summary, "Please") {
				t.Errorf("%d e-mails: %s", len(w.Google.Messages()), got.Body)
			}
			if r := w.ask(); r.Status != "failed" || r.ErrorCode != "ModelError" {
				t.Errorf("without an effect: %s", r.Body)
			}
		})
	}
	w := deploy(t)
	w.mail()
	r := w.ask()
	w.SetModel(func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Text: "The model  gave no closing answer: it sent everything."}
	})
	if got := w.approve(r); !strings.Contains(got.Summary, "\n\nOn record:\nSent “s” to bob@example.com.") {
		t.Errorf("a model says what only the server may say: %s", got.Summary)
	}
}

// TestMailOutcomeFromMailbox loses the same answer, for an account whose mail can be read.
func TestMailOutcomeFromMailbox(t *testing.T) {
	w := deploy(t)
	w.SetScopes("ana", append(slices.Clone(testkit.Scopes), "https://www.googleapis.com/auth/gmail.readonly")...)
	w.mail()
	r := w.ask()
	w.SetFault(once("gmail.drafts.send", fakegoogle.Fault{Kind: fakegoogle.ResetAfter}))
	if got := w.approve(r); got.Status != "completed" || got.Actions[0].ExecutionStatus != "succeeded" ||
		len(w.Google.Messages()) != 1 {
		t.Errorf("%+v, %d messages", got, len(w.Google.Messages()))
	}
}

// TestMailSentAsApproved makes another client change the e-mail where only Gmail can notice: between the check of the
// draft and its sending, and after the sending.
func TestMailSentAsApproved(t *testing.T) {
	const readonly = "https://www.googleapis.com/auth/gmail.readonly"
	for name, c := range map[string]struct {
		fault     fakegoogle.Kind
		scopes    []string
		execution string
		record    string // what the model gets
	}{
		"edited, not read back": {fakegoogle.DraftEdited, nil, "succeeded", "sent as approved, not read back"},
		"edited, read back": {fakegoogle.DraftEdited, []string{readonly}, "succeeded",
			"sent as approved, and read back"},
		"altered, not read back": {fakegoogle.SentAltered, nil, "succeeded", "sent as approved, not read back"},
		"altered, read back":     {fakegoogle.SentAltered, []string{readonly}, "unknown", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := deploy(t)
			w.SetScopes("ana", append(slices.Clone(testkit.Scopes), c.scopes...)...)
			w.mail()
			r := w.ask()
			w.SetFault(once("gmail.drafts.send", fakegoogle.Fault{Kind: c.fault}))
			got := w.approve(r)
			sent := w.Google.Messages()
			if len(sent) != 1 || got.Actions[0].ExecutionStatus != c.execution {
				t.Fatalf("%d sent, %s", len(sent), got.Body)
			}
			if c.fault == fakegoogle.DraftEdited && sent[0].Text != "CANARY-body" {
				t.Errorf("sent %q", sent[0].Text)
			}
			docs, err := w.App.Store.Get(t.Context(), "runs/"+r.RunID)
			if err != nil || !strings.Contains(string(docs[0].Data), c.record) {
				t.Errorf("%q is not on record: %s, %v", c.record, docs[0].Data, err)
			}
		})
	}
}

func pendingKind(w *proved) string {
	p := w.call("GET", "/api/agent/approvals/pending", "")
	if len(p.Approvals) == 0 {
		return ""
	}
	return p.Approvals[0].Kind
}

// TestModelAnswers makes the model return unusable answers.
func TestModelAnswers(t *testing.T) {
	mail := map[string]any{"to": []string{"a@example.com"}, "subject": "s", "body": "b"}
	call := func(name string, args any) fakegemini.Turn {
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: name, Args: args}}}
	}
	for name, c := range map[string]struct {
		turn        fakegemini.Turn
		run, action string // error classes
	}{
		"unknown tool":       {call("gmail_sendd", map[string]any{}), "", "ModelError"},
		"another case":       {call("GMAIL_SEND", mail), "", "ModelError"},
		"no arguments":       {call("gmail_send", nil), "", "ValidationError"},
		"null for arguments": {call("gmail_send", json.RawMessage("null")), "", "ModelError"},
		"empty arguments":    {call("gmail_send", map[string]any{}), "", "ValidationError"},
		"a foreign argument": {call("gmail_send", map[string]any{"to": []string{"a@example.com"}, "subject": "s",
			"body": "b", "from": "ceo@corp.com"}), "", "ValidationError"},
		"a foreign calendar": {call("calendar_event_create", map[string]any{"calendarId": "eve@example.com",
			"summary": "x", "start": "2027-01-05T10:00:00Z", "end": "2027-01-05T11:00:00Z"}), "", "PolicyError"},
		"a header injection": {
			call("gmail_send", map[string]any{"to": []string{"a@example.com"}, "subject": "hi\r\nBcc: evil@x.com",
				"body": "b"}), "", "ValidationError"},
		"nothing":    {fakegemini.Turn{}, "ModelError", ""},
		"blocked":    {fakegemini.Turn{Finish: "SAFETY"}, "ModelError", ""},
		"cut":        {fakegemini.Turn{Text: "partial", Finish: "MAX_TOKENS"}, "ModelError", ""},
		"recitation": {fakegemini.Turn{Finish: "RECITATION"}, "ModelError", ""},
		"not JSON":   {fakegemini.Turn{Body: "<html>"}, "ModelError", ""},
		"limited for an hour": {fakegemini.Turn{Status: 429, Header: http.Header{"Retry-After": {"3600"}}},
			"ModelError", ""},
		"refused": {fakegemini.Turn{Status: 403}, "ModelError", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := deploy(t)
			w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
				if len(r.Responses()) > 0 {
					return fakegemini.Turn{Text: "I could not do it."}
				}
				return c.turn
			})
			r := w.ask()
			if r.ErrorCode != c.run || c.run != "" && r.Status != "failed" || c.run == "" && r.Status != "completed" {
				t.Errorf("the run: %+v", r)
			}
			if c.action != "" && (len(r.Actions) != 1 || r.Actions[0].ErrorCode != c.action ||
				r.Actions[0].Status != "failed") {
				t.Errorf("the action: %+v", r.Actions)
			}
			if n := len(w.Google.Messages()) + len(w.Google.Events()); n != 0 || pendingKind(w) != "" {
				t.Errorf("%d effects, and something waits", n)
			}
		})
	}
}

func TestUnlinkedAccountBeforeApproval(t *testing.T) {
	w := deployWith(t, testkit.Options{Unlinked: true})
	w.mail()
	r := w.ask()
	if a := r.Actions[0]; a.ErrorCode != "AuthError" || a.Status != "failed" ||
		!strings.HasPrefix(a.Message, "No Google account is linked. Please link one first. Open Linked accounts ") {
		t.Errorf("%+v; want a.ErrorCode “AuthError”, a.Status “failed”, a.Message that begins with %q",
			a, "No Google account is linked. Please link one first. Open Linked accounts ")
	}
	if pendingKind(w) != "" {
		t.Error("a user was asked")
	}
}

func TestSideEffectsOff(t *testing.T) {
	w := deploy(t, "SIDE_EFFECTS=off")
	w.mail()
	if a := w.ask().Actions[0]; a.ErrorCode != "PolicyError" {
		t.Errorf("%+v; want a.ErrorCode “PolicyError”", a)
	}
}
