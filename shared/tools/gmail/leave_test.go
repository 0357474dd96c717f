package gmail_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

const (
	listDrafts = "gmail.drafts.list"
	profile    = "gmail.getProfile"
)

func TestDraftSuite(t *testing.T) {
	drafting := suite
	drafting.Tool = gmail.NewDraft(nil, gmail.Options{})
	drafting.Previews = map[string]toolstest.Shown{"nothing is sent": {Want: []string{
		"Save a draft of an e-mail to one person", "To: a@example.com", "Subject: s", "Message: b"}}}
	drafting.Run(t)
}

// newLeft is a Gmail whose user has a draft of their own, and the call that leaves another one.
func newLeft(t *testing.T) *env {
	t.Helper()
	w := newEnv(t, gmail.Options{}, compose)
	own := provider(t, w.Google, gmail.NewDraft(fakegoogle.Accounts{}, gmail.Options{Endpoint: w.URL + "/"}))
	own.Call.ActionID = "another"
	if _, err := own.Tool.Execute(t.Context(), own.Call); err != nil {
		t.Fatal(err)
	}
	w.Provider = *provider(t, w.Google, own.Tool)
	w.Effects = func() int { return len(w.Drafts("me@example.com")) - 1 + len(w.Messages()) }
	w.Result = func(t *testing.T, out json.RawMessage) {
		if !strings.Contains(string(out), `"draftId":"r`) {
			t.Errorf("the answer is %s", out)
		}
	}
	return w
}

func TestDraftReconcileEachFault(t *testing.T) {
	unclear := toolstest.Settled{Want: toolstest.Review, Effects: 1}
	toolstest.Settling{Open: func(t *testing.T) *toolstest.Provider { return &newLeft(t).Provider }, Rereads: true,
		Broken: gmail.NewDraft(toolstest.Panicking{}, gmail.Options{}),
		Acts:   []string{profile, create}, Looks: []string{listDrafts, get}, Cases: map[string]toolstest.Settled{
			"nothing breaks": sent,
			"503 before":     sent.After(create, status(503, "")),
			"500 after":      sent.After(create, fakegoogle.Fault{Kind: fakegoogle.StatusAfter, Status: 500}),
			"reset after":    sent.After(create, kind(fakegoogle.ResetAfter)),
			"hangs after":    sent.After(create, kind(fakegoogle.HangAfter)),
			"empty 200":      sent.After(create, kind(fakegoogle.EmptyAfter)),
			"429":            sent.After(create, status(429, "rateLimitExceeded")),
			"400":            unsent(fault.Tool, "provider_refused").After(create, status(400, "invalid")),
			"401":            unsent(fault.Auth, fault.CodeReauth).After(create, status(401, "authError")),
			"lost, not listed": unclear.After(create, kind(fakegoogle.ResetAfter)).
				After(listDrafts, kind(fakegoogle.OddAfter)),
			"lost, no access": unclear.After(create, kind(fakegoogle.ResetAfter)).
				After(listDrafts, status(401, "authError")),
		}}.Run(t)
}

// TestDraftAsApproved compares the draft with what gmail_send would send.
func TestDraftAsApproved(t *testing.T) {
	w := newLeft(t)
	if _, err := w.Tool.Execute(t.Context(), w.Call); err != nil {
		t.Fatal(err)
	}
	all := w.Drafts("me@example.com")
	send := provider(t, w.Google, gmail.New(fakegoogle.Accounts{}, gmail.Options{Endpoint: w.URL + "/"}))
	if end, _, err := send.CarryOut(t); end != toolstest.Completed {
		t.Fatal(end, err)
	}
	if len(w.Messages()) != 1 || !strings.Contains(string(all[len(all)-1]), "Hello") || w.Messages()[0].Bcc == nil {
		t.Errorf("%d e-mails were sent, and the drafts are %q", len(w.Messages()), all)
	}
	if s := w.Tool.Spec; s.Approval != tool.Required || strings.Join(s.Scopes, " ") != compose {
		t.Errorf("%+v; want s.Approval %v, strings.Join(s.Scopes, \" \") %v", s, tool.Required, compose)
	}
}

// TestDraftDeletedByOwner loses the answer about a draft that its owner deletes at once: it is not left again.
func TestDraftDeletedByOwner(t *testing.T) {
	w := newLeft(t)
	w.Break(create, kind(fakegoogle.ResetAfter))
	w.Break(listDrafts, kind(fakegoogle.DraftDeleted))
	if end, _, _ := w.CarryOut(t); end != toolstest.Review || len(w.Drafts("me@example.com")) != 0 {
		t.Errorf("%s, and %d drafts are there", end, len(w.Drafts("me@example.com")))
	}
}
