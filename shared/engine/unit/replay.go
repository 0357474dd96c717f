package unit

import (
	"context"
	"iter"

	"github.com/countersign-run/countersign/shared/agent/run"
)

// Replay judges each call of the run once more, in order, and returns the event that proposed the call with the error
// of judge. The transition has the run's state before the event, and the time of the event. Documents other than the
// run's are read as they are now. Nothing is committed.
func (ex *Execution) Replay(ctx context.Context, judge func(*Tx, run.Event) error) iter.Seq2[run.Event, error] {
	return func(yield func(run.Event, error) bool) {
		state := &run.State{}
		for i, e := range ex.Events {
			if e.Proposed != nil && !yield(e, ex.judgePast(ctx, state, i, judge)) {
				return
			}
			if err := state.Apply(e); err != nil { // unreachable: the events were folded when they were read
				yield(e, err)
				return
			}
		}
	}
}

// judgePast judges the call of the event with the index. The execution has only the events before it meanwhile.
func (ex *Execution) judgePast(ctx context.Context, state *run.State, index int,
	judge func(*Tx, run.Event) error) error {
	all := ex.Events
	defer func() { ex.Events = all }()
	e := all[index]
	ex.Events = all[:index]
	for {
		tx := &Tx{Ex: ex, Now: e.At, Run: ex.Run, State: state, Approvals: map[string]*run.Approval{}}
		if again, err := ex.readMissing(ctx, judge(tx, e)); !again {
			return err
		}
	}
}
