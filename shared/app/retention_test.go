package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/accounts/auth"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// TestRetentionSweep checks that sweeps delete an unused conversation after RETENTION, with its run and approval, and
// that its audit entries stay until AUDIT_RETENTION. A conversation with a waiting run is kept.
func TestRetentionSweep(t *testing.T) {
	realpart.Unraced(t)
	onTimedStores(t, func(t *testing.T, open func(settings ...string) *timed) {
		w := open("RETENTION=30", "AUDIT_RETENTION=60", "APPROVAL_TTL=30d", "RUN_DEADLINE=45d")
		w.App.API.Records.Retention, w.App.API.Records.AuditDays = w.App.Config.Retention, w.App.Config.AuditDays
		push, err := auth.NewPush(auth.PushConfig{Issuer: w.App.Config.PushIssuer, Audience: w.App.Config.PushAudience,
			ServiceAccount: w.App.Config.PushServiceAccount}) // the scheduler's tokens are from today
		if err != nil {
			t.Fatal(err)
		}
		w.App.API.Push = push
		w.mail()
		done, waits := w.ask(), w.ask()
		if got := w.approve(done); got.Status != "completed" {
			t.Fatalf("%s; want got.Status “completed”", got.Body)
		}
		left := func(r testkit.Answer) (n int) {
			t.Helper()
			docs, err := w.App.Store.Get(t.Context(), document.RunPath(r.RunID), document.ThreadPath(r.ThreadID),
				document.ApprovalPath(r.Approvals[0].ApprovalID))
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range docs {
				if d.Exists() {
					n++
				}
			}
			return n
		}
		// An hour of sweeps. Each sweep looks at one shard of conversations.
		sweeps := func() {
			t.Helper()
			for range document.Shards {
				if a, err := w.Sweep(t.Context()); err != nil || a.HTTP != 200 {
					t.Fatalf("%v %s; want a.HTTP 200", err, a.Body)
				}
				w.tick(time.Minute)
			}
		}
		w.tick(29 * 24 * time.Hour)
		sweeps()
		if n := left(done); n != 3 {
			t.Fatalf("too early, %d of 3 documents are left", n)
		}
		w.tick(30 * time.Hour) // the other run's approval has expired, and the run has not moved yet
		sweeps()
		if n := left(done); n != 0 {
			t.Errorf("%d documents are left", n)
		}
		if n := left(waits); n != 3 {
			t.Errorf("of a run that has not ended, %d of 3 documents are left", n)
		}
		w.verify(done.RunID, false)
		w.tick(31 * 24 * time.Hour)
		if strings.HasSuffix(t.Name(), "embedded") {
			sweeps()
			w.verify(done.RunID, true)
			return
		}
		// Firestore deletes by these fields
		entries, head, err := w.App.API.Records.Chain(t.Context(), done.RunID)
		if err != nil || head == nil {
			t.Fatal(err)
		}
		docs, err := w.App.Store.Query(t.Context(), document.AuditOfChain(done.RunID, 50))
		if err != nil || len(docs) != len(entries) {
			t.Fatal(err, len(docs))
		}
		docs = append(docs, w.get(document.AuditHeadPath(done.RunID)))
		for _, d := range docs {
			if !document.Expired(d, w.now()) || document.Expired(d, w.now().AddDate(0, 0, -5)) {
				t.Errorf("%s has %v", d.Path, d.Fields)
			}
		}
	})
}

func (w *timed) get(path string) store.Doc {
	w.t.Helper()
	docs, err := w.App.Store.Get(w.t.Context(), path)
	if err != nil {
		w.t.Fatal(err)
	}
	return docs[0]
}

// verify checks the audit chain of a deleted run.
func (w *timed) verify(runID string, expired bool) {
	w.t.Helper()
	entries, head, err := w.App.API.Records.Chain(w.t.Context(), runID)
	if err != nil || (head == nil) != expired || (len(entries) == 0) != expired {
		w.t.Fatalf("%v: %d entries, and the end %v", err, len(entries), head)
	}
	if head != nil && len(audit.Verify(entries, *head)) > 0 {
		w.t.Errorf("the chain of %d entries is not whole", len(entries))
	}
}
