package app_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// onEachStore runs a test over HTTP on both stores.
func onEachStore(t *testing.T, test func(t *testing.T, settings ...string)) {
	t.Run("embedded", func(t *testing.T) { test(t) })
	t.Run("firestore", func(t *testing.T) {
		t.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(t))
		test(t, "STORE=firestore", "QUEUE=embedded", "GOOGLE_CLOUD_PROJECT=demo-"+strings.ToLower(rand.Text()[:12]))
	})
}

// TestCardsIndependent proposes two e-mails at once, approves one and rejects the other in each order, with and without
// a resume in between. Only the approved e-mail is sent, and the answer says which.
func TestCardsIndependent(t *testing.T) {
	onEachStore(t, func(t *testing.T, settings ...string) {
		w := deploy(t, settings...)
		w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
			if len(r.Responses()) > 0 || r.NoTools {
				return fakegemini.Turn{Text: "That is what came of it."}
			}
			return fakegemini.Turn{Calls: []fakegemini.Call{
				{Name: "gmail_send", Args: testkit.Mail("bob@example.com", "for Bob", "x")},
				{Name: "gmail_send", Args: testkit.Mail("eve@example.com", "for Eve", "x")}}}
		})
		for _, order := range [][2]struct {
			card     int
			decision string
		}{{{0, "approve_once"}, {1, "reject"}}, {{1, "reject"}, {0, "approve_once"}},
			{{1, "approve_once"}, {0, "reject"}}, {{0, "reject"}, {1, "approve_once"}}} {
			for _, between := range []bool{false, true} {
				before := len(w.Google.Messages())
				r := w.ask()
				yes := 0
				for _, step := range order {
					card := r.Approvals[step.card]
					if got, err := w.Resolve(t.Context(), "ana", card, step.decision); err != nil ||
						got.HTTP != http.StatusOK {
						t.Fatalf("%v, %v %s; want got.HTTP %v", order, err, got.Body, http.StatusOK)
					}
					if step.decision == "approve_once" {
						yes = step.card
					}
					if between {
						w.deliver()
					}
				}
				w.deliver()
				got := w.call("GET", "/api/agent/runs/"+r.RunID, "")
				to := [2]string{"bob@example.com", "eve@example.com"}
				sent := w.Google.Messages()[before:]
				switch {
				case len(sent) != 1 || sent[0].To[0] != to[yes]:
					t.Errorf("%v, delivered in between: %t: %d e-mails went out", order, between, len(sent))
				case got.Status != "completed" || got.Actions[yes].Status != "completed" ||
					got.Actions[1-yes].Status != "rejected":
					t.Errorf("%v, delivered in between: %t: %s", order, between, got.Body)
				case !strings.Contains(got.Summary,
					"Not done, because you rejected it: Send an e-mail to one person (To: "+
						to[1-yes]) || strings.Count(got.Summary, "Not done") != 1:
					t.Errorf("the summary is %q", got.Summary)
				}
			}
		}
	})
}

// TestApprovalExpired reads a run whose approval has expired, before any sweep.
func TestApprovalExpired(t *testing.T) {
	w, forward := deployTimed(t, "APPROVAL_TTL=10m")
	call := func(method, path, body string) testkit.Answer {
		t.Helper()
		a, err := w.Call(t.Context(), "ana", method, "/api/agent/"+path, body, "Idempotency-Key", "k")
		if err != nil || a.HTTP != http.StatusOK {
			t.Fatalf("%s: %v %d %s; want a.HTTP %v", path, err, a.HTTP, a.Body, http.StatusOK)
		}
		return a
	}
	w.SetModel(testkit.Wants("gmail_send", testkit.Mail("bob@example.com", "s", "x")))
	const prompt = `{"prompt":"please do it"}`
	r := call("POST", "run", prompt)
	forward(11 * time.Minute)
	for path, a := range map[string]testkit.Answer{"runs/" + r.RunID: call("GET", "runs/"+r.RunID, ""),
		"run, sent again": call("POST", "run", prompt)} {
		if a.Status != "failed" || a.ErrorReason != "expired" || a.Actions[0].Status != "failed" ||
			len(a.Approvals) > 0 {
			t.Errorf("%s: %s", path, a.Body)
		}
	}
	if a := call("GET", "approvals/pending", ""); len(a.Approvals) > 0 {
		t.Errorf("it waits: %s", a.Body)
	}
	if a := call("POST", "runs/"+r.RunID+"/cancel", ""); a.ErrorReason != "expired" {
		t.Errorf("a cancel after it: %s", a.Body)
	}
}

// TestSweepPassesUnreadableRuns puts more unreadable runs than a page of the sweep before a run with an expired
// approval.
func TestSweepPassesUnreadableRuns(t *testing.T) {
	w, forward := deployTimed(t, "APPROVAL_TTL=10m")
	long := time.Now().UTC().Truncate(time.Microsecond).Add(-time.Hour)
	var writes []store.Write
	for i := range 201 {
		writes = append(writes, store.Create(document.RunPath(fmt.Sprintf("unreadable%016d", i)),
			map[string]any{"uid": "ana", "status": "planning", "due": long}, []byte("{")))
	}
	if _, err := w.App.Store.Commit(t.Context(), writes...); err != nil {
		t.Fatal(err)
	}
	w.mail()
	r := w.ask()
	forward(11 * time.Minute)
	if a, err := w.Sweep(t.Context()); err != nil || !strings.Contains(string(a.Body), `"published":202`) {
		t.Fatalf("%v %s; want a.Body with %q", err, a.Body, `"published":202`)
	}
	for range 3 {
		w.deliver() // one page of the queue
	}
	docs, err := w.App.Store.Get(t.Context(), document.RunPath(r.RunID))
	if err != nil || docs[0].Fields["status"] != "failed" {
		t.Errorf("%v, the run's document says %v", err, docs[0].Fields)
	}
	if n := strings.Count(w.Logs.String(), "run_set_back"); n != 201 {
		t.Errorf("%d runs were set back", n)
	}
	forward(time.Minute)
	if n, err := w.Deliver(t.Context()); err != nil || n != 0 {
		t.Errorf("%v, %d messages were not acknowledged", err, n)
	}
}

// deployTimed returns a deployment whose clock can be advanced, by less than the hour that a token is valid.
func deployTimed(t *testing.T, settings ...string) (w *proved, forward func(time.Duration)) {
	t.Helper()
	var later atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	over := testkit.Open(t, testkit.Options{Settings: settings, App: []app.Option{app.WithClock(now)}})
	return &proved{over, t}, func(d time.Duration) { later.Add(int64(d)) }
}
