package loop_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/notify/event"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// told receives the notifications about runs.
type told struct {
	all   []event.Event
	down  bool
	tries int
}

func (d *told) Publish(_ context.Context, notices ...event.Event) error {
	d.tries++
	if d.down {
		return errors.New("down")
	}
	d.all = append(d.all, notices...)
	return nil
}

// short returns the types of the notifications, in order, without their common part.
func (d *told) short() (all []string) {
	for _, n := range d.all {
		all = append(all, strings.TrimPrefix(string(n.Type), "run.countersign."))
	}
	return all
}

func newTellingEnv(t *testing.T) (*env, *told) {
	w, d := newEnv(t), &told{}
	w.loop.Publisher, w.loop.Console = d, "https://example.com"
	return w, d
}

// due returns the time at which the run must be looked at again.
func (w *env) due(runID string) time.Time { return document.RunFieldsOf(w.document(runID)).Due }

// TestNotificationsOfEachCourse checks the notifications of every possible course of a run.
func TestNotificationsOfEachCourse(t *testing.T) {
	ask := script.Turn{Calls: []script.Call{{Name: "send", Args: map[string]any{"to": []string{"bob@x.org"},
		"text": "ten"}}}}
	decide := func(d run.Decision) func(*testing.T, *env, string) {
		return func(t *testing.T, w *env, id string) {
			if _, err := w.decideOn(id, d, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		first script.Turn
		next  []string // the provider's behaviour
		then  func(t *testing.T, w *env, id string)
		want  string
	}{
		"words alone": {first: script.Turn{Text: "Hello."}, want: "run.ended"},
		"a call that only reads": {first: script.Turn{Calls: []script.Call{{Name: "lookup",
			Args: map[string]any{"word": "x"}}}}, want: "run.ended"},
		"it waits":  {first: ask, want: "approval.requested"},
		"a yes":     {first: ask, then: decide(run.ApproveOnce), want: "approval.requested approval.decided run.ended"},
		"a no":      {first: ask, then: decide(run.Reject), want: "approval.requested approval.decided run.ended"},
		"no answer": {first: ask, then: expire, want: "approval.requested approval.expired run.ended"},
		"a cancel": {first: ask, then: func(t *testing.T, w *env, id string) {
			if _, err := w.loop.Cancel(t.Context(), "ana", id); err != nil {
				t.Fatal(err)
			}
		}, want: "approval.requested run.ended"},
		"an outcome that is not known": {first: ask, next: []string{"ambiguous"}, then: decide(run.ApproveOnce),
			want: "approval.requested approval.decided review.requested"},
	} {
		t.Run(name, func(t *testing.T) {
			w, d := newTellingEnv(t)
			w.next = c.next
			w.model.Then(c.first, script.Turn{Text: "Done."})
			r := start(t, w, "tell bob")
			if c.then != nil {
				c.then(t, w, r.RunID)
			}
			deliver(t, w)
			if got := strings.Join(d.short(), " "); got != c.want {
				t.Errorf("told %q, want %q", got, c.want)
			}
			for i, n := range d.all {
				if n.Data.UID != "ana" || n.Data.RunID != r.RunID || n.Data.Agent != run.Assistant ||
					n.Data.Link != "https://example.com/#/t/"+r.ThreadID ||
					i > 0 && n.Time.Before(d.all[i-1].Time) {
					t.Errorf("told %+v", n)
				}
			}
			v, _ := w.see(t, r.RunID)
			if soon := w.due(r.RunID); v.Status == run.Awaiting && soon.Before(w.now.Add(time.Hour)) ||
				v.Status != run.Awaiting && !soon.IsZero() {
				t.Errorf("a run that is %s and was told of is due at %v", v.Status, soon)
			}
		})
	}
}

// expire lets the approval's time pass, and lets the sweep find it.
func expire(t *testing.T, w *env, _ string) {
	w.tick(25 * time.Hour)
	if _, err := w.loop.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestNotificationsRetried keeps the run due while notifications fail, and sends them once they succeed.
func TestNotificationsRetried(t *testing.T) {
	w, d := newTellingEnv(t)
	d.down = true
	id := w.held(t, run.Reject, 0)
	deliver(t, w)
	for range 10 { // more often than a run that cannot be moved is tried
		w.tick(6 * time.Minute)
		if _, err := w.loop.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		deliver(t, w)
	}
	if f := document.RunFieldsOf(w.document(id)); f.Quarantined || len(d.all) > 0 {
		t.Errorf("put aside: %v, and told %v", f.Quarantined, d.short())
	}
	if d.tries < 4 || d.tries > 8 {
		t.Errorf("tried %d times in an hour, and each pause is to be twice as long", d.tries)
	}
	d.down = false
	expire(t, w, id)
	deliver(t, w)
	want := []string{"approval.requested", "approval.decided", "run.ended"}
	if got := d.short(); !slices.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
	if at := w.due(id); !at.IsZero() {
		t.Errorf("it is due at %v after it was told of", at)
	}
}

// TestNotificationsAfterDeath lets the process die after it has sent notifications, and before that is recorded.
func TestNotificationsAfterDeath(t *testing.T) {
	w, d := newTellingEnv(t)
	whole := w.loop.Store
	w.loop.Store = faulty.Wrap(whole, faulty.Commits(func(ctx context.Context, _ *faulty.Call, next faulty.Next) error {
		if len(d.all) > 0 {
			return errors.New("the process is gone")
		}
		return next(ctx)
	}))
	w.model.Then(script.Turn{Text: "Hello."})
	r := start(t, w, "hi")
	w.loop.Store = whole
	expire(t, w, r.RunID)
	deliver(t, w)
	if len(d.all) != 2 || d.all[0] != d.all[1] {
		t.Errorf("told %+v", d.all)
	}
	if at := w.due(r.RunID); !at.IsZero() {
		t.Errorf("it is due at %v after it was told of", at)
	}
}

// quick is a user who decides as soon as the notification arrives, before it is recorded.
type quick struct {
	told
	answer func(runID string)
}

func (d *quick) Publish(ctx context.Context, notices ...event.Event) error {
	if notices[0].Type == event.ApprovalRequested {
		d.answer(notices[0].Data.RunID)
	}
	return d.told.Publish(ctx, notices...)
}

// TestNotificationsAfterDecision approves a call before the notification about it is recorded. The process that
// receives the resume can advance the run at once, and the notification about the decision is sent too.
func TestNotificationsAfterDecision(t *testing.T) {
	for _, down := range []bool{false, true} {
		w := newEnv(t)
		d := &quick{told: told{down: down}}
		d.answer = func(id string) {
			if _, err := w.decideOn(id, run.ApproveOnce, 0); err != nil {
				t.Fatal(err)
			}
		}
		w.loop.Publisher, w.loop.Console = d, "https://example.com"
		w.model.Then(script.Turn{Calls: []script.Call{{Name: "send",
			Args: map[string]any{"to": []string{"bob@x.org"}, "text": "ten"}}}}, script.Turn{Text: "Done."})
		v := start(t, w, "tell bob")
		if err := w.deliver(t.Context()); err != nil || len(w.effects) != 1 {
			t.Errorf("nobody can be told: %v; moved with %v, sent %d", down, err, len(w.effects))
		}
		if s := run.Status(document.RunFieldsOf(w.document(v.RunID)).Status); s != run.Completed {
			t.Errorf("nobody can be told: %v; it is %s", down, s)
		}
		want := []string{"approval.requested", "approval.decided", "run.ended"}
		if got := d.short(); !down && !slices.Equal(got, want) {
			t.Errorf("told %v, want %v", got, want)
		}
	}
}

// TestNotificationsOfDeletedRun deletes a conversation before the notification about its end is sent. The user does not
// wait for it, and the notification is sent nevertheless.
func TestNotificationsOfDeletedRun(t *testing.T) {
	w, d := newTellingEnv(t)
	d.down = true
	w.model.Then(script.Turn{Text: "Hello."})
	v := start(t, w, "hello")
	w.deletedLater(t, v.RunID, func() {
		d.down = false
		w.tick(time.Hour)
		if _, err := w.loop.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		deliver(t, w)
	})
	if got := strings.Join(d.short(), " "); got != "run.ended" {
		t.Errorf("told %s", got)
	}
}
