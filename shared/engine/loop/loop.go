// Package loop is the life of a run: [Loop.Start], [Loop.Advance], [Loop.Resolve], [Loop.Answer], [Loop.Cancel] and
// [Loop.Sweep]. Start reading at start.go. A run is created (create.go) and advanced; advance.go makes one step after
// the other; turn.go handles the model's answer; end.go ends a run. Each of them consists of transitions (package
// journal). A process may die between any two instructions; the next one reads the events and continues. Package
// approval handles user decisions, package effect carries out calls, and package conversation builds the model's
// context.
//
//   - Only the holder of a run's lease advances the run. Lease times are the store's, so workers' clocks do not matter.
//   - An effect takes place only after a commit that names the process that carries it out ([run.Started]). An effect
//     that has started and has no outcome is never repeated on a guess: its tool finds the outcome (Reconcile), or its
//     user does (a review).
//   - A call that needs its user's decision waits in an approval. Resolve records the decision and does nothing else.
//   - A call that the client carries out waits for the client's answer, for a limited time. Answer records the answer
//     and does nothing else.
//   - The field "due" of a run's document says when a process must look at the run again. The field is the outbox:
//     Sweep publishes a resume for every overdue run, whether a publish was lost, a worker died, or an approval or an
//     answer did not arrive in time.
package loop

import (
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/journal"
)

// LeastCall is the minimum timeout of a function that makes a step of a run.
const LeastCall = 30 * time.Second

// Loop advances runs, each according to its agent.
type Loop struct {
	journal.Env
	sharded  *atomic.Bool  // set once GiveShards has finished
	measured *atomic.Int64 // time of the last measureWaiting, in Unix seconds
}

// New returns a loop. Optional fields of env that are not set get their defaults.
func New(env journal.Env) *Loop {
	l := &Loop{Env: *env.Init(), sharded: new(atomic.Bool), measured: new(atomic.Int64)}
	l.TakeBack = takingBack(l)
	return l
}

// ThreadClosed reports whether the error means that a thread takes no more messages, because it is full or deleted.
func ThreadClosed(err error) bool {
	return fault.Is(err, fault.Auth, fault.CodeNotFound) || fault.Is(err, fault.Policy, CodeThreadFull)
}

// CodeThreadFull is the error code for a thread that takes no more messages.
const CodeThreadFull fault.Code = "thread_full"
