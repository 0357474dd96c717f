package records_test

import (
	"context"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

const day = 24 * time.Hour

// keeping returns records that keep conversations for 30 days, on the given day after converseAtLength.
func (w *recorder) keeping(days int) *records.Records {
	return &records.Records{Store: w, Now: func() time.Time { return began.AddDate(0, 0, days) }, Retention: 30 * day}
}

// expire runs the retention on the shard of the long conversation.
func expire(t *testing.T, r *records.Records, found, deleted int) {
	t.Helper()
	u, err := r.ExpireThreads(t.Context(), document.Shard(long))
	if err != nil || u != (records.Unused{Found: found, Deleted: deleted}) {
		t.Fatalf("%v: %+v, want %d found and %d deleted", err, u, found, deleted)
	}
}

// TestRetention deletes a whole conversation once it was unused for long enough and all its runs have ended. It keeps a
// conversation with a run that waits for its user, or that is quarantined, by this release or by an earlier one without
// a time. The chains of the runs stay intact, and the user's usage still counts.
func TestRetention(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *recorder) {
		w := open(t)
		converseAtLength(t, w, 450)
		u := run.User{UID: "ana", Usage: run.UserUsage{Day: "2027-03-01", Calls: 7}}
		put(t, w, document.UserPath("ana"), nil, u)
		third := run.Run{ID: "run-000000000003", UID: "ana", ThreadID: long, CreatedAt: began}
		waiting := document.RunFields{UID: "ana", ThreadID: long, Status: string(run.Awaiting), CreatedAt: began,
			Due: began.AddDate(0, 0, 60)}
		put(t, w, document.RunPath(third.ID), waiting.Map(third.ID), third)

		expire(t, w.keeping(29), 0, 0)
		expire(t, &records.Records{Store: w, Now: w.keeping(99).Now}, 0, 0) // retention is off
		expire(t, w.keeping(31), 1, 0)
		for _, fields := range []map[string]any{
			document.RunFields{UID: "ana", ThreadID: long, Status: string(run.Executing), CreatedAt: began,
				Due: document.Never, Quarantined: true}.Map(third.ID),
			document.RunFields{UID: "ana", ThreadID: long, Status: string(run.Executing), CreatedAt: began,
				Quarantined: true}.Map(third.ID),
		} {
			w.overwrite(t, document.RunPath(third.ID), fields)
			expire(t, w.keeping(31), 1, 0)
		}
		seen(t, w, true)
		w.overwrite(t, document.RunPath(third.ID), document.RunFields{UID: "ana", ThreadID: long,
			Status: string(run.Failed), CreatedAt: began}.Map(third.ID))
		expire(t, w.keeping(31), 1, 1)
		expire(t, w.keeping(31), 0, 0)
		onlyAudit(t, w, audit.Deletion, audit.Deleted)
		if e := ownChain(t, w, "ana", audit.Deletion, audit.Deleted); e[0].Rule != "retention" || e[0].Ref != long {
			t.Errorf("the record says %+v", e[0])
		}
		if got, err := w.records().User(t.Context(), "ana"); err != nil || got.Usage.Calls != 7 {
			t.Errorf("%v: the user has used %+v", err, got.Usage)
		}
	})
}

// overwrite replaces the fields of a document.
func (w *recorder) overwrite(t *testing.T, path string, fields map[string]any) {
	t.Helper()
	docs, err := w.Get(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(t.Context(), store.Update(path, docs[0].Version, fields, docs[0].Data)); err != nil {
		t.Fatal(err)
	}
}

// TestRetentionKilledAtEveryCommit kills a process before and after each commit of a deletion. The user sees either the
// whole conversation or no part of it, and the sweep deletes the rest.
func TestRetentionKilledAtEveryCommit(t *testing.T) {
	killedAtEveryCommit(t, func(t *testing.T, w *recorder, n int, after bool) bool {
		converseAtLength(t, w, 450)
		w.Set(faulty.Commits(faulty.Nth(n, faulty.Kill(after))))
		died := faulty.Dies(func() { _, _ = w.keeping(31).ExpireThreads(t.Context(), document.Shard(long)) })
		w.Set()
		if died != (n <= 6) { // the mark, an output, two runs, a page of messages, the thread
			t.Fatalf("commit %d: killed: %t", n, died)
		}
		if begun := n > 1 || after; died {
			seen(t, w, !begun)
		}
		if _, err := w.keeping(31).FinishDeletions(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.keeping(31).ExpireThreads(t.Context(), document.Shard(long)); err != nil {
			t.Fatal(err)
		}
		onlyAudit(t, w, audit.Deletion, audit.Deleted)
		return died
	})
}

// TestExpireThreadUsedAgain keeps a conversation that its user continues after the decision to delete it.
func TestExpireThreadUsedAgain(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *recorder) {
		w := open(t)
		converseAtLength(t, w, 3)
		used := false
		w.Set(faulty.Commits(func(ctx context.Context, _ *faulty.Call, next faulty.Next) error {
			if !used {
				used = true
				w.overwrite(t, document.ThreadPath(long),
					document.ThreadFields{UID: "ana", UpdatedAt: began.AddDate(0, 0, 31)}.Map(long))
			}
			return next(ctx)
		}))
		expire(t, w.keeping(31), 1, 0)
		w.Set()
		seen(t, w, true)
	})
}

// TestExpireAudit lets chains of many entries expire in a store that does not delete by itself. The remaining entries
// verify at each moment, and a user's own chain continues at its end.
func TestExpireAudit(t *testing.T) {
	ctx, now := t.Context(), began
	st, err := embedded.OpenMemory(func() time.Time { return now })
	st = cleanup.Close(t, st, err)
	r := &records.Records{Store: st, Now: func() time.Time { return now }, AuditDays: 60}
	expiry := &records.Expiry{Records: r}
	for n := range 300 { // two entries a day, for 150 days
		if changed, err := r.SetDisabled(ctx, "ana", n%2 == 0); err != nil || !changed {
			t.Fatal(changed, err)
		}
		now = now.Add(12 * time.Hour)
	}
	var head audit.Head
	for n := range 5 {
		e := audit.Entry{RunID: "run-000000000009", UID: "ana", At: began.Add(time.Duration(n) * time.Hour),
			Kind: audit.Requested, KeepDays: 60}
		e, head = audit.Seal(head, e)
		put(t, st, document.AuditPath(e.RunID, e.Seq), e.Fields(), e)
	}
	data, err := strictjson.Marshal(head)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Commit(ctx, store.Create(document.AuditHeadPath("run-000000000009"),
		document.AuditHeadFields(began, head.Expires), data)); err != nil {
		t.Fatal(err)
	}
	own := func() (int, []audit.Finding) {
		entries, head, err := r.Chain(ctx, audit.UserChain("ana"))
		if err != nil || head == nil {
			t.Fatal(err)
		}
		return len(entries), audit.VerifyAt(now, entries, *head)
	}
	for range 4 {
		if _, err := expiry.Audit(ctx); err != nil {
			t.Fatal(err)
		}
		if n, wrong := own(); len(wrong) > 0 {
			t.Errorf("of %d entries: %v", n, wrong)
		}
	}
	if n, _ := own(); n != 119 { // entries of less than 60 days
		t.Errorf("%d entries are left", n)
	}
	if entries, head, err := r.Chain(ctx, "run-000000000009"); err != nil || len(entries) > 0 || head != nil {
		t.Errorf("%v: %d entries, and the end %v, of a run that is long gone", err, len(entries), head)
	}
	now = now.AddDate(1, 0, 0)
	for range 4 {
		if _, err := expiry.Audit(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n, wrong := own(); n != 0 || len(wrong) > 0 {
		t.Errorf("%d entries are left: %v", n, wrong)
	}
	if _, err := r.SetDisabled(ctx, "ana", true); err != nil {
		t.Fatal(err)
	}
	if n, wrong := own(); n != 1 || len(wrong) > 0 {
		t.Errorf("a chain that goes on has %d entries: %v", n, wrong)
	}
}
