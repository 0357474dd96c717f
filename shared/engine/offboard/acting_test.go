package offboard_test

import (
	"bytes"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/engine/offboard"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// killBeforeOutcome kills a process, once, before an effect's outcome is recorded.
func killBeforeOutcome(armed *atomic.Bool) faulty.Hook {
	return faulty.Of(func(c *faulty.Call) bool {
		return slices.ContainsFunc(c.Writes,
			func(w store.Write) bool { return bytes.Contains(w.Doc.Data, []byte(`"kind":"outcome"`)) }) &&
			armed.CompareAndSwap(true, false)
	}, faulty.KillBefore)
}

// withUnrecordedEffect returns a deployment in which ana's mail has been sent and its outcome is not recorded, and a
// function that advances the clock.
func withUnrecordedEffect(t *testing.T) (w *deployment, forward func(time.Duration)) {
	var armed atomic.Bool
	var ahead atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	w = newDeployment(t, nil, app.WithClock(clock))
	w.seen.Set(killBeforeOutcome(&armed))
	// the sent e-mail is the proof
	w.SetScopes("ana", append(testkit.Scopes, "https://www.googleapis.com/auth/gmail.readonly")...)
	w.link(t, "ana", "ana")
	w.SetModel(testkit.Wants("gmail_send", testkit.Mail("bob@example.com", canary, canary)))
	r, err := w.Ask(t.Context(), "ana", "mail "+canary)
	if err != nil || len(r.Approvals) != 1 {
		t.Fatalf("%v: %s; want len(r.Approvals) 1", err, r.Body)
	}
	if _, err := w.Resolve(t.Context(), "ana", r.Approvals[0], "approve_once"); err != nil {
		t.Fatal(err)
	}
	armed.Store(true)
	if _, err := w.Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	if armed.Load() || len(w.EffectsOf("ana")) != 1 {
		t.Fatal("the e-mail was to leave, and its outcome to be lost")
	}
	return w, func(d time.Duration) { ahead.Add(int64(d)) }
}

// TestDeleteDuringEffect deletes a user whose mail has been sent, while the run has not recorded it.
func TestDeleteDuringEffect(t *testing.T) {
	w, forward := withUnrecordedEffect(t)
	got, err := w.users(w.seen).Delete(t.Context(), "ana")
	if err != nil || got.Gone || len(offboard.Acting(got.Waiting)) != 1 || got.Link != "" {
		t.Fatalf("%v: %+v, want a run that is waited for", err, got)
	}
	if len(w.runs(t, "ana")) != 1 {
		t.Fatal("a run was deleted whose effect has no outcome")
	}
	forward(3 * time.Minute) // the dead process's lease ends
	if _, err := w.Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.delete(t, w.users(w.seen))
	if n := len(w.EffectsOf("ana")); n != 1 {
		t.Fatalf("the e-mail was sent %d times", n)
	}
	w.outcome(t, "succeeded")
}

// TestRevokeDuringEffect disables ana at the same moment.
func TestRevokeDuringEffect(t *testing.T) {
	w, forward := withUnrecordedEffect(t)
	d := w.users(w.seen)
	first, err := d.Revoke(t.Context(), "ana")
	if err != nil || !first.Changed || first.Link != offboard.Kept || len(first.Waiting) != 1 {
		t.Fatalf("%v: %+v", err, first)
	}
	forward(3 * time.Minute)
	if _, err := w.Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, err := d.Revoke(t.Context(), "ana")
	if err != nil || second.Changed || second.Link != offboard.Forgotten || len(offboard.Acting(second.Waiting)) != 0 {
		t.Fatalf("%v: %+v", err, second)
	}
	w.outcome(t, "succeeded")
}

// outcome checks the one outcome that the audit has.
func (w *deployment) outcome(t *testing.T, want string) {
	t.Helper()
	docs, err := w.App.Store.Query(t.Context(), document.AllAudit(100))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, d := range docs {
		if bytes.Contains(d.Data, []byte(`"kind":"outcome"`)) &&
			bytes.Contains(d.Data, []byte(`"executionStatus":"`+want+`"`)) {
			n++
		}
	}
	if n != 1 {
		t.Fatalf("%d outcomes %s are in the audit", n, want)
	}
}
