package loop

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Watch returns the user's run at once, and again after each change of its document, until ctx ends, which is no error.
// When an approval expires, Watch publishes a resume, so that the change is visible before the next sweep. Any error
// ends the sequence: AuthError not_found for a run that is not the user's or is deleted in the meantime,
// ToolExecutionError store_unavailable if a part of it could not be read. While the run does not change, Watch reads
// and computes nothing.
func (l *Loop) Watch(ctx context.Context, uid, runID string) iter.Seq2[*Watched, error] {
	return func(yield func(*Watched, error) bool) {
		stop := func() bool { return true }
		defer func() { stop() }()
		for d, err := range l.Store.Watch(ctx, document.RunPath(runID)) {
			if err != nil {
				yield(nil, unit.StoreError(err))
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

// afterExpiry is the delay between an expiry and the resume, so that the expiry has passed by every clock.
const afterExpiry = 500 * time.Millisecond

// wakeAtExpiry publishes a resume when the first waiting call expires, unless stop is called before.
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
	return w.ex.PublishAfter(ctx, max(0, first.Sub(w.ex.Now()))+afterExpiry)
}

// AwaitRest watches the user's run until the server no longer continues it on its own, here or elsewhere, or until ctx
// ends. It returns the run's last state, or nil if none was read. It returns the errors of [Loop.Watch].
func (l *Loop) AwaitRest(ctx context.Context, uid, runID string) (last *Watched, err error) {
	for d, err := range l.Store.Watch(ctx, document.RunPath(runID)) {
		if err != nil {
			return last, unit.StoreError(err)
		}
		last = watched(l, uid, runID, d)
		switch run.Status(document.RunFieldsOf(d).Status) {
		case run.Queued, run.Planning, run.Executing: // the run still advances, so its events need not be read
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

// Watched is a run at the time of a change of its document.
type Watched struct {
	ex     *unit.Execution
	uid    string
	doc    store.Doc
	loaded bool
}

func watched(l *Loop, uid, runID string, d store.Doc) *Watched {
	return &Watched{ex: l.NewExecution(runID, nil), uid: uid, doc: d}
}

// load decodes the run and reads its other documents. The run must be the user's.
func (w *Watched) load(ctx context.Context) error {
	if w.loaded {
		return nil
	}
	w.loaded = true
	return w.ex.TakeOwned(ctx, w.uid, w.doc)
}

// Ended reports whether the run has ended.
func (w *Watched) Ended() bool { return w.ex.State.End != nil }

// DelegatedBy returns the agent of another program that started the run, or nil.
func (w *Watched) DelegatedBy() *run.Delegate { return w.ex.State.Input.DelegatedBy }

// Events returns the run's events with numbers above after. It returns an error if the events contradict each other.
func (w *Watched) Events(after int64) ([]run.EventView, error) {
	return run.ViewEvents(w.ex.Run.Nonce, w.ex.Toolbox.Tools, w.ex.Events, after)
}

// View returns the run at the present time in the form that its owner sees. Call it at most once. It returns the errors
// of [Loop.Watch].
func (w *Watched) View(ctx context.Context) (*run.View, error) {
	if err := w.load(ctx); err != nil {
		return nil, err
	}
	return currentView(ctx, w.ex)
}

// Stored returns all of the run's stored events.
func (w *Watched) Stored() []run.Event { return w.ex.Events }

// Idle reports whether nothing happens in the run until a person acts: it rests, and no call begins
// after an undo window or because it was postponed.
func (w *Watched) Idle() bool {
	begins := !run.HeldUntil(w.ex.State, w.ex.Now()).IsZero() || !run.PostponedUntil(w.ex.State, w.ex.Now()).IsZero()
	return w.Rests() && (!begins || len(w.ex.State.Open()) > 0)
}

// Rests reports whether the server does not continue the run on its own, here or elsewhere.
func (w *Watched) Rests() bool {
	st, _ := w.ex.Next()
	return !moving(st, w.ex.State)
}

// Wake publishes a resume if something follows from the time alone, so that readers need not wait for the sweep.
func (w *Watched) Wake(ctx context.Context) {
	if dueByClock(w.ex) {
		w.ex.Publish(ctx)
	}
}

// OutputState is the state of an action's stored output.
type OutputState int

// The states of an output.
const (
	NoOutput   OutputState = iota // none is stored, or there is no such action
	OutputWait                    // the action has not started
	OutputLive                    // the action is in progress
	OutputOver                    // the action has its outcome, or never began
)

// Output returns the state of the action's output.
func (w *Watched) Output(actionID string) OutputState {
	a := w.ex.State.Action(actionID)
	if a == nil {
		return NoOutput
	}
	t := w.ex.Toolbox.Tools[a.Tool]
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

// Printing returns the IDs of the actions in progress whose output is stored.
func (w *Watched) Printing() (ids []string) {
	for _, id := range w.ex.Run.Outputs {
		if w.Output(id) == OutputLive {
			ids = append(ids, id)
		}
	}
	return ids
}
