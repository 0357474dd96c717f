package loop

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/store"
)

// Watch returns the user's run as it is, and again each time that its document has changed, until ctx ends, which is no
// error. It has the run moved when what it waits for expires, so that this is seen at once and not with the next sweep.
// Any error ends the sequence: AuthError not_found for a run that is not the user's or is deleted meanwhile,
// ToolExecutionError store_unavailable where a part of it could not be read. While the run does not change, watching
// reads and computes nothing.
func (l *Loop) Watch(ctx context.Context, uid, runID string) iter.Seq2[*Watched, error] {
	return func(yield func(*Watched, error) bool) {
		stop := func() bool { return true }
		defer func() { stop() }()
		for d, err := range l.Store.Watch(ctx, document.RunPath(runID)) {
			if err != nil {
				yield(nil, journal.StoreError(err))
				return
			}
			w := watched(l, uid, runID, d)
			if err := w.load(ctx); err != nil {
				yield(nil, err)
				return
			}
			stop()
			stop = w.wakeAtExpiry(ctx)
			if !yield(w, nil) {
				return
			}
		}
	}
}

// afterExpiry is how much later than an expiry the run is moved: by then no clock is before it.
const afterExpiry = 500 * time.Millisecond

// wakeAtExpiry has the run moved when the first of what it waits for expires, unless stop is called before.
func (w *Watched) wakeAtExpiry(ctx context.Context) (stop func() bool) {
	var first time.Time
	for _, a := range w.ex.State.Open() {
		if a.Waiting() && a.Kind != run.KindReview && (first.IsZero() || a.ExpiresAt.Before(first)) {
			first = a.ExpiresAt
		}
	}
	if first.IsZero() || w.Ended() {
		return func() bool { return true }
	}
	return journal.PublishAfter(ctx, w.ex, max(0, first.Sub(w.ex.Now()))+afterExpiry)
}

// AwaitRest watches the user's run until the server no longer goes on with it by itself, here or elsewhere, or until
// ctx ends, and returns it as it was last, or nil where nothing of it was read. The errors are those of [Loop.Watch].
func (l *Loop) AwaitRest(ctx context.Context, uid, runID string) (last *Watched, err error) {
	for d, err := range l.Store.Watch(ctx, document.RunPath(runID)) {
		if err != nil {
			return last, journal.StoreError(err)
		}
		last = watched(l, uid, runID, d)
		switch run.Status(document.RunFieldsOf(d).Status) {
		case run.Queued, run.Planning, run.Executing: // it moves, so its events need not be read
			continue
		}
		if err := last.load(ctx); err != nil {
			return nil, err
		}
		if st, _ := last.ex.Next(); !moving(st, last.ex.State) {
			break
		}
	}
	return last, nil
}

// Watched is a run as it was when its document changed.
type Watched struct {
	ex     *journal.Execution
	uid    string
	doc    store.Doc
	loaded bool
}

func watched(l *Loop, uid, runID string, d store.Doc) *Watched {
	return &Watched{ex: l.NewExecution(runID, nil), uid: uid, doc: d}
}

// load decodes the run, which must be the user's, and reads what of it lies in other documents.
func (w *Watched) load(ctx context.Context) error {
	if w.loaded {
		return nil
	}
	w.loaded = true
	return journal.TakeOwned(ctx, w.ex, w.uid, w.doc)
}

// Ended reports whether the run's end is among its events.
func (w *Watched) Ended() bool { return w.ex.State.End != nil }

// Via returns the agent of another program that began the run, or nil.
func (w *Watched) Via() *run.Via { return w.ex.State.Input.Via }

// Events returns the run's events with numbers above after.
func (w *Watched) Events(after int64) ([]run.EventView, error) {
	return run.ViewEvents(w.ex.Run.Nonce, w.ex.Tools, w.ex.Events, after)
}

// View returns the run as its owner sees it by the clock, now. It is called once at most. The errors are those of
// [Loop.Watch].
func (w *Watched) View(ctx context.Context) (*run.View, error) {
	if err := w.load(ctx); err != nil {
		return nil, err
	}
	return currentView(ctx, w.ex)
}

// Stored returns the run's events as they are stored, all of them.
func (w *Watched) Stored() []run.Event { return w.ex.Events }

// Idle reports whether nothing happens in the run before somebody acts: it rests, and holds no yes that is carried out
// when its hold is over.
func (w *Watched) Idle() bool {
	return w.Rests() && (run.HeldUntil(w.ex.State, w.ex.Now()).IsZero() || len(w.ex.State.Open()) > 0)
}

// Rests reports whether the server does not go on with the run by itself, here or elsewhere.
func (w *Watched) Rests() bool {
	st, _ := w.ex.Next()
	return !moving(st, w.ex.State)
}

// Wake asks for a run to be moved in which something follows from the time alone, so that whoever waits for it need not
// wait for the sweep.
func (w *Watched) Wake(ctx context.Context) {
	if dueByClock(w.ex) {
		w.ex.Publish(ctx)
	}
}

// OutputState says what there is, or will be, of the output of an action.
type OutputState int

// The states of an output.
const (
	NoOutput   OutputState = iota // none is kept, or there is no such action
	OutputWait                    // the action has not begun
	OutputLive                    // it is under way
	OutputOver                    // it has its outcome, or never began
)

// Output returns what there is of the output of the action.
func (w *Watched) Output(actionID string) OutputState {
	a := w.ex.State.Action(actionID)
	if a == nil {
		return NoOutput
	}
	t := w.ex.Tools[a.Tool]
	kept := slices.Contains(w.ex.Run.Outputs, actionID)
	switch {
	case !kept && (t == nil || !t.KeepsOutput):
		return NoOutput
	case a.Status == run.ActionExecuting:
		return OutputLive
	case kept || w.Ended() || a.Terminal():
		return OutputOver
	}
	return OutputWait
}

// Printing returns the actions under way whose output is kept.
func (w *Watched) Printing() (ids []string) {
	for _, id := range w.ex.Run.Outputs {
		if w.Output(id) == OutputLive {
			ids = append(ids, id)
		}
	}
	return ids
}
