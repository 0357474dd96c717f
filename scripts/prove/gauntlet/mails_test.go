package gauntlet

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/gauntlet/trial"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// TestMailsDeniedWithoutCard is case 20.
func TestMailsDeniedWithoutCard(t *testing.T) {
	w := deploy(t, testkit.Options{})
	var crowd []string
	for i := range 500 {
		crowd = append(crowd, fmt.Sprintf("p%d@x.org", i))
	}
	for name, c := range map[string]struct {
		args map[string]any
		card string // expected on the card; empty: no card
	}{
		"line break in the subject": {testkit.Mail(trial.Recipient, "hi\r\nBcc: evil@x.org", "b"), ""},
		"line break in an address":  {testkit.Mail("bob@x.org\r\nBcc: evil@x.org", "s", "b"), ""},
		"free headers": {map[string]any{"to": []string{trial.Recipient}, "subject": "s", "body": "b",
			"headers": map[string]string{"Bcc": "evil@x.org"}}, ""},
		"500 recipients":     {map[string]any{"to": crowd, "subject": "s", "body": "b"}, ""},
		"an empty body":      {testkit.Mail(trial.Recipient, "s", ""), ""},
		"a homoglyph domain": {testkit.Mail("bob@ex\u0430mple.com", "s", "b"), ""},
		"the same in ASCII":  {testkit.Mail("bob@xn--exmple-4nf.com", "s", "b"), "letters from outside ASCII"},
		"a self-loop":        {testkit.Mail(testkit.Address(trial.First), "s", "b"), testkit.Address(trial.First)},
	} {
		t.Run(name, func(t *testing.T) {
			w.SetModel(testkit.Wants("gmail_send", c.args))
			r := w.ask("send it", "")
			if c.card != "" {
				if len(r.Approvals) != 1 || !strings.Contains(string(r.Body), c.card) {
					t.Errorf("no card that shows %s: %s", c.card, r.Body)
				}
				return
			}
			if a := r.Actions[0]; len(r.Approvals) != 0 || a.ErrorCode != "ValidationError" &&
				a.ErrorCode != "PolicyError" || a.ExecutionStatus != "not_started" {
				t.Errorf("%s", r.Body)
			}
		})
	}
	w.deliver()
	w.wantMails(0)
}

// leaky adds a secret to every JSON object in a server's responses.
func leaky(h http.Handler, secret string, leaks *atomic.Int32) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaks.Add(1)
		said := httptest.NewRecorder()
		h.ServeHTTP(said, r)
		maps.Copy(w.Header(), said.Header())
		w.Header().Del("Content-Length")
		w.WriteHeader(said.Code)
		// A disconnected client needs no response.
		_, _ = w.Write([]byte(strings.Replace(said.Body.String(), "{", `{"snippet":"`+secret+`","description":"`+secret+
			`",`, 1)))
	})
}

// TestSecretsInArgumentsAndErrors is case 23. A secret is in the arguments of each tool, and in the responses and
// errors of its service. The model repeats everything that it gets.
func TestSecretsInArgumentsAndErrors(t *testing.T) {
	const inArgs, inOutput, inError = "CANARY-in-the-arguments", "CANARY-in-the-output", "CANARY-in-the-error"
	event := testkit.Event("x", time.Now().AddDate(0, 1, 0))
	event["description"] = inArgs
	atOnce := app.WithEnv(func(l *unit.Env) {
		l.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	})
	for name, c := range map[string]struct {
		tool, op string
		args     map[string]any
	}{
		"gmail_send":            {"gmail_send", "gmail.drafts.send", testkit.Mail(trial.Recipient, "s", inArgs)},
		"a draft":               {"gmail_send", "gmail.drafts.create", testkit.Mail(trial.Recipient, "s", inArgs)},
		"calendar_event_create": {"calendar_event_create", "calendar.events.insert", event},
	} {
		for _, status := range []int{0, 400, 403, 503} {
			t.Run(fmt.Sprintf("%s answers %d", name, status), func(t *testing.T) {
				dir := t.TempDir()
				w := deploy(t, testkit.Options{Dir: dir})
				var leaks atomic.Int32
				w.Handle("/leaky/", http.StripPrefix("/leaky", leaky(w.Google, inOutput, &leaks)))
				w.restart(testkit.Options{Dir: dir, App: []app.Option{atOnce}, Settings: []string{"LOG_LEVEL=debug",
					"GMAIL_API_ENDPOINT=" + w.Cloud.URL + "/leaky/",
					"CALENDAR_API_ENDPOINT=" + w.Cloud.URL + "/leaky/calendar/v3/"}})
				w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
					if told := r.Responses(); len(told) > 0 {
						return fakegemini.Turn{Text: "I was told: " + string(told[0].Response)}
					}
					return fakegemini.Turn{Calls: []fakegemini.Call{{Name: c.tool, Args: c.args}}}
				})
				r := w.ask("do it", "")
				w.approve(r)
				if status != 0 {
					fault := fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: status,
						Reason: "CANARYinTheReason", Text: inError + " Bearer ya29.CANARY"}
					w.SetFault(func(op string) fakegoogle.Fault {
						if op == c.op {
							return fault
						}
						return fakegoogle.Fault{}
					})
				}
				w.deliver()
				if a := w.call("GET", "/runs/"+r.RunID, "").Actions[0]; (a.Status == "failed") != (status != 0) ||
					leaks.Load() == 0 {
					t.Errorf("%d answers held a secret, and the action is %+v", leaks.Load(), a)
				}
				// The user sees the effect, so their own arguments are in the run, and only there.
				run := string(w.call("GET", "/runs/"+r.RunID, "").Body)
				for what, text := range map[string]string{
					"the run":    strings.ReplaceAll(run, inArgs, ""),
					"the audit":  string(w.call("GET", "/audit?runId="+r.RunID, "").Body),
					"the thread": string(w.call("GET", "/threads/"+r.ThreadID+"/messages", "").Body),
					"the log":    w.Logs.String(),
				} {
					if i := strings.Index(text, "CANARY"); i >= 0 {
						t.Errorf("%s holds a secret: …%s", what, text[max(0, i-200):min(len(text), i+80)])
					}
				}
			})
		}
	}
}
