package gmail_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	gmailapi "google.golang.org/api/gmail/v1"
	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/testkit/emulate"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

const all = "https://mail.google.com/"

// owner is the one linked account of the emulator.
type owner struct{ client *http.Client }

func (owner) Place(context.Context, string, []string) (tool.Place, error) { return tool.Place{}, nil }

func (o owner) Client(context.Context, string, tool.Place) (*http.Client, error) {
	return o.client, nil
}

// emulated returns the tool with a third-party emulator and the scopes.
func emulated(t *testing.T, e *emulate.Emulator, endpoint string, mode gmail.Mode, scopes ...string) *world {
	t.Helper()
	c := e.Client(t, scopes...)
	return &world{tool: gmail.New(owner{c}, gmail.Options{Mode: mode, Endpoint: endpoint, Timeout: 10 * time.Second})}
}

// mailbox returns the messages with the label that carry the action's id, as the emulator stores them.
func mailbox(t *testing.T, e *emulate.Emulator, label, action string) (found [][]byte) {
	t.Helper()
	svc, err := gmailapi.NewService(t.Context(), option.WithHTTPClient(e.Client(t, all)),
		option.WithEndpoint(e.URL+"/"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := svc.Users.Messages.List("me").LabelIds(label).MaxResults(500).Do()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Messages {
		m, err := svc.Users.Messages.Get("me", m.Id).Format("raw").Do()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(m.Raw, "="))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw, []byte("X-Countersign-Action: "+action+"\r\n")) {
			found = append(found, raw)
		}
	}
	return found
}

func TestAnotherGmailTakesWhatWasApproved(t *testing.T) {
	e := emulate.Start(t)
	for name, c := range map[string]struct {
		mode  gmail.Mode
		scope string
	}{
		"draft":  {gmail.Draft, compose},
		"direct": {gmail.Direct, send},
	} {
		t.Run(name, func(t *testing.T) {
			w := emulated(t, e, e.URL+"/", c.mode, c.scope)
			action := call(t, w)
			action.ActionID = "action_happy_" + name
			if c.mode == gmail.Draft {
				var err error
				if action.Handle, err = w.tool.Prepare(t.Context(), action); err != nil {
					t.Fatal(err)
				}
				if n := len(mailbox(t, e, "SENT", action.ActionID)); n != 0 {
					t.Fatalf("%d messages were sent before the draft was", n)
				}
			}
			out, err := w.tool.Execute(t.Context(), action)
			if err != nil {
				t.Fatal(err)
			}
			var sent gmail.Sent
			if err := json.Unmarshal(out, &sent); err != nil || sent.MessageID == "" || sent.ThreadID == "" ||
				sent.Inferred {
				t.Errorf("Execute = %s, %v", out, err)
			}
			got := mailbox(t, e, "SENT", action.ActionID)
			if len(got) != 1 {
				t.Fatalf("%d messages were sent", len(got))
			}
			for _, part := range []string{"To: a@example.com\r\n", "Bcc: b@example.com\r\n", "Hello\r\nworld"} {
				if !bytes.Contains(got[0], []byte(part)) {
					t.Errorf("the mail lacks %q:\n%s", part, got[0])
				}
			}
		})
	}
}

// TestAnotherGmailsFaultsAreSettled implements reliability §2, the table "How C18-C20 are settled", both columns of
// Gmail.
func TestAnotherGmailsFaultsAreSettled(t *testing.T) {
	const create, get, draftSend, messageSend = "gmail.drafts.create", "gmail.drafts.get", "gmail.drafts.send",
		"gmail.messages.send"
	e := emulate.Start(t)
	for name, c := range map[string]struct {
		mode   gmail.Mode
		scopes []string
		op     string
		faults []emulate.Fault
		want   end
		sent   int
		class  fault.Class
		code   fault.Code
	}{
		"draft: 401": {gmail.Draft, []string{compose}, create, []emulate.Fault{{Status: 401}},
			failed, 0, fault.Auth, fault.CodeReauth},
		"draft: 401 at the sending": {gmail.Draft, []string{compose}, draftSend, []emulate.Fault{{Status: 401}},
			failed, 0, fault.Auth, fault.CodeReauth},
		"draft: scope not granted": {gmail.Draft, []string{metadata}, "", nil, failed, 0, fault.Auth,
			fault.CodeScope},
		"draft: 403 by policy": {gmail.Draft, []string{compose}, draftSend,
			[]emulate.Fault{{Status: 403, Reason: "domainPolicy"}}, failed, 0, fault.Tool, "provider_refused"},
		"draft: 429 before, at the draft": {gmail.Draft, []string{compose}, create,
			[]emulate.Fault{{Status: 429, Reason: "rateLimitExceeded"}}, completed, 1, "", ""},
		"draft: 429 before": {gmail.Draft, []string{compose}, draftSend,
			[]emulate.Fault{{Status: 429, Reason: "rateLimitExceeded"}}, completed, 1, "", ""},
		"draft: 503 before": {gmail.Draft, []string{compose}, draftSend, []emulate.Fault{{Status: 503}},
			completed, 1, "", ""},
		"draft: cut before": {gmail.Draft, []string{compose}, draftSend, []emulate.Fault{{}}, completed,
			1, "", ""},
		"draft: cut at the look": {gmail.Draft, []string{compose}, get, []emulate.Fault{{}}, completed, 1,
			"", ""},
		"draft: 503 after, sent is read": {gmail.Draft, []string{compose, metadata}, draftSend,
			[]emulate.Fault{{Status: 503, After: true}}, completed, 1, "", ""},
		"draft: 503 after, no sent is read": {gmail.Draft, []string{compose}, draftSend,
			[]emulate.Fault{{Status: 503, After: true}}, review, 1, fault.Tool, "provider_failed"},
		"draft: cut after, sent is read": {gmail.Draft, []string{compose, metadata}, draftSend,
			[]emulate.Fault{{After: true}}, completed, 1, "", ""},
		"draft: cut after, at the draft": {gmail.Draft, []string{compose}, create, []emulate.Fault{{After: true}},
			completed, 1, "", ""},
		"direct: 401": {gmail.Direct, []string{send}, messageSend, []emulate.Fault{{Status: 401}},
			failed, 0, fault.Auth, fault.CodeReauth},
		"direct: scope not granted": {gmail.Direct, []string{metadata}, "", nil, failed, 0, fault.Auth,
			fault.CodeScope},
		"direct: 429 before": {gmail.Direct, []string{send}, messageSend,
			[]emulate.Fault{{Status: 429, Reason: "rateLimitExceeded"}}, completed, 1, "", ""},
		"direct: 503 before": {gmail.Direct, []string{send}, messageSend, []emulate.Fault{{Status: 503}},
			review, 0, fault.Tool, "provider_failed"},
		"direct: 503 after": {gmail.Direct, []string{send}, messageSend,
			[]emulate.Fault{{Status: 503, After: true}}, review, 1, fault.Tool, "provider_failed"},
		"direct: cut after": {gmail.Direct, []string{send}, messageSend, []emulate.Fault{{After: true}},
			review, 1, fault.Tool, "provider_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := emulated(t, e, e.URL+"/", c.mode, c.scopes...)
			action := call(t, w)
			action.ActionID = "action_" + key(name)
			e.Break(c.op, c.faults...)
			got, err := w.carryOut(t, &action)
			if got != c.want || c.code != "" && !fault.Is(err, c.class, c.code) || c.want == completed && err != nil &&
				!tool.IsAmbiguous(err) {
				t.Errorf("it ended as %s: %v; want %s %s %s", got, err, c.want, c.class, c.code)
			}
			if n := len(mailbox(t, e, "SENT", action.ActionID)); n != c.sent {
				t.Errorf("%d messages were sent; want %d", n, c.sent)
			}
		})
	}
}

// key converts a name to a valid action id.
func key(name string) string {
	b := []byte(name)
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			b[i] = '_'
		}
	}
	return string(b)
}

// TestAnAnswerThatCannotBeReadIsNoFailure uses the emulator as it is: it stores the mail and answers with a number that
// Google's client cannot decode. The tool must neither conclude that the mail was refused nor send it again.
func TestAnAnswerThatCannotBeReadIsNoFailure(t *testing.T) {
	e := emulate.Start(t)
	w := emulated(t, e, e.Direct+"/", gmail.Direct, send)
	action := call(t, w)
	if got, err := w.carryOut(t, &action); got != review || !tool.IsAmbiguous(err) {
		t.Errorf("it ended as %s: %v", got, err)
	}
	if n := len(mailbox(t, e, "SENT", action.ActionID)); n != 1 {
		t.Errorf("%d messages were sent", n)
	}
}
