package app_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// TestGmailQuota approves e-mails over HTTP until the project's quota of Gmail is used up. The next e-mail waits, its
// run says until when, Gmail is not asked meanwhile, and the e-mail is sent once.
func TestGmailQuota(t *testing.T) {
	w, forward := deployTimed(t, "GMAIL_UNITS_PER_MINUTE=115")
	type view struct {
		Actions []struct{ NotBefore time.Time }
	}
	state := func(id string) (a testkit.Answer, until time.Time) {
		a = w.call("GET", "/api/agent/runs/"+id, "")
		var v view
		if err := json.Unmarshal(a.Body, &v); err != nil || len(v.Actions) != 1 {
			t.Fatalf("%v: %s; want one action", err, a.Body)
		}
		return a, v.Actions[0].NotBefore
	}
	var waits testkit.Answer
	sent := 0
	for ; waits.RunID == ""; sent++ { // a minute can end between two e-mails
		if sent > 20 {
			t.Fatal("no e-mail waits")
		}
		w.mail()
		a := w.ask()
		w.approve(a)
		if v, until := state(a.RunID); !until.IsZero() {
			waits = v
			break
		}
	}
	asked := 0
	w.SetFault(func(op string) (none fakegoogle.Fault) {
		asked++
		return none
	})
	if n := len(w.Google.Messages()); n != sent || waits.Status != "executing" {
		t.Fatalf("%d e-mails are sent, and the run is %s: %s; want %d and executing", n, waits.Status, waits.Body, sent)
	}
	if log := w.Logs.String(); !strings.Contains(log, "call_postponed") { // an alert watches for it
		t.Errorf("the log does not say that the call waits:\n%s", log)
	}
	w.swept()
	w.deliver()
	if asked > 0 {
		t.Errorf("Google was asked %d times while the e-mail waits; want 0", asked)
	}
	w.SetFault(nil)
	forward(3 * time.Minute)
	w.swept()
	w.deliver()
	v, until := state(waits.RunID)
	if n := len(w.Google.Messages()); v.Status != "completed" || !until.IsZero() || n != sent+1 {
		t.Errorf("%s until %s with %d e-mails: %s; want completed with %d", v.Status, until, n, v.Body, sent+1)
	}
}
