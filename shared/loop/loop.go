// Package loop is the life of a run: [Loop.Start], [Loop.Advance], [Loop.Resolve], [Loop.Answer], [Loop.Cancel] and
// [Loop.Sweep]. Read it from start.go: a run is created (create.go) and advanced; advance.go makes one step after the
// other; turn.go is the model's answer and what is made of it; end.go is how a run ends. Each consists of transitions
// (package journal), so a process may die between any two instructions, and the next one reads the events and
// continues. What needs its user is in package approval, what acts in package effect, and what the model is told in
// package conversation.
//
//   - Only the holder of a run's lease moves it. Lease times are the store's, so workers' clocks do not matter.
//   - An effect takes place only after a commit that records who carries it out ([run.Started]). An effect that has
//     started and has no outcome is never repeated on a guess: the tool settles it (Reconcile), or its user does (a
//     review).
//   - A call that needs its user's decision waits in an approval; Resolve records the decision and does nothing else.
//   - A call that the client carries out waits for its answer, for a bounded time; Answer records it likewise.
//   - The field "due" of a run's document says when the run must be looked at again. It is the outbox: Sweep publishes
//     a resume for whatever is overdue, whether a publish was lost, a worker died, or an approval or an answer did not
//     come in time.
package loop

import (
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/journal"
)

// LeastCall is the shortest timeout of a function in which a step of a run fits.
const LeastCall = 30 * time.Second

// Loop moves runs, each as its agent is.
type Loop struct {
	journal.Env
	sharded  *atomic.Bool  // see GiveShards
	measured *atomic.Int64 // when measureWaiting last did, in seconds
}

// New returns a loop. What env leaves out of the optional fields gets its default.
func New(env journal.Env) *Loop {
	return &Loop{Env: *env.Init(), sharded: new(atomic.Bool), measured: new(atomic.Int64)}
}

// ThreadClosed reports whether the error means that a thread takes no more messages: it is full, is being deleted, or
// was.
func ThreadClosed(err error) bool {
	return fault.Is(err, fault.Auth, fault.CodeNotFound) || fault.Is(err, fault.Policy, CodeThreadFull)
}

// CodeThreadFull is the code for a thread that takes no more messages.
const CodeThreadFull fault.Code = "thread_full"
