package offboard_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/engine/offboard"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// corrupt makes the run's document unreadable.
func (w *deployment) corrupt(t *testing.T, runID string) {
	t.Helper()
	docs, err := w.seen.Get(t.Context(), document.RunPath(runID))
	if err != nil {
		t.Fatal(err)
	}
	d := docs[0]
	if _, err := w.seen.Commit(t.Context(),
		store.Update(d.Path, d.Version, d.Fields, []byte(`{"id":5,"note":"`+canary+`"}`))); err != nil {
		t.Fatal(err)
	}
}

// TestDeleteUnreadableRun deletes a user with a waiting run that cannot be read. It is quarantined within a quarter of
// an hour, and then everything is deleted. A run whose effect has no outcome is reported, and nothing else is deleted
// until it has one.
func TestDeleteUnreadableRun(t *testing.T) {
	var ahead atomic.Int64
	w := newDeployment(t, nil, app.WithClock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }))
	w.populate(t, "ana", canary)
	w.corrupt(t, w.runs(t, "ana")[1]) // it waits for ana
	if got := w.exported(t, "ana"); !strings.Contains(got, `"raw":"{\"id\":5`) {
		t.Error("the export lacks the run that cannot be read")
	}
	if got, err := w.users(w.seen).Delete(t.Context(), "ana"); err == nil || got.Gone ||
		!strings.Contains(err.Error(), "cannot be read") {
		t.Fatalf("before it was put aside: %v %+v", err, got)
	}
	w.putAside(t, func() { ahead.Add(int64(10 * time.Minute)) })
	w.delete(t, w.users(w.seen))
	w.checkGone(t)
}

// putAside runs the resume function's attempts until the run is quarantined.
func (w *deployment) putAside(t *testing.T, forward func()) {
	t.Helper()
	for range 6 {
		if _, err := w.Deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
		forward()
		if _, err := w.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDeleteUnreadableRunWithEffect(t *testing.T) {
	w, forward := withUnrecordedEffect(t)
	w.corrupt(t, w.runs(t, "ana")[0])
	w.putAside(t, func() { forward(10 * time.Minute) })
	got, err := w.users(w.seen).Delete(t.Context(), "ana")
	if err != nil || got.Gone || len(got.Waiting) != 1 || !got.Waiting[0].Quarantined ||
		len(offboard.Acting(got.Waiting)) != 1 {
		t.Fatalf("%v %+v", err, got)
	}
}
