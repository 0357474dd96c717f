// Package loop moves runs: [Loop.Start], [Loop.Advance], [Loop.Resolve], [Loop.Answer], [Loop.Cancel] and [Loop.Sweep].
// Each consists of transitions. A transition is decided in memory and made durable by one atomic commit (see
// transition.go), so a process may die between any two instructions, and the next one reads the events and continues.
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
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"time"

	"github.com/countersign-run/countersign/shared/agents"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/policy"
	"github.com/countersign-run/countersign/shared/queue"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/wait"
)

// LeastCall is the shortest timeout of a function in which a step of a run fits.
const LeastCall = 30 * time.Second

// Loop moves runs, each as its agent is. The fields from Log on are optional.
type Loop struct {
	Store  store.Store
	Queue  queue.Queue
	Model  model.Model
	Tools  tool.Set
	Rules  policy.Rules
	Agents agents.Set // without the agent of a run, it is read, decided, cancelled and ended, and not moved

	// Function is the deployed function that this process is; it moves the runs of the agents that live there
	// ([agents.Set.LivesIn]). Empty: the runs of all agents.
	Function string

	UserLimits  run.Limits    // what a user may use, whichever agents they ask
	LeaseMargin time.Duration // a lease outlives the step that it covers by this; 0: 15 seconds

	Log    *slog.Logger
	Now    func() time.Time // for durations and, adjusted to the store's clock, for leases
	Random io.Reader        // for ids and the jitter of retries
	Sleep  func(context.Context, time.Duration) error
}

// Sink receives what happens while a run moves, in order, after it was committed, on the goroutine that moves the run.
// A sink must not block for long, and it cannot stop the run.
type Sink func(Update)

// Update is what a reader of a moving run gets: a status, a piece of the model's text, or an action in its present
// state.
type Update struct {
	RunID, ThreadID string
	Status          run.Status
	Delta           string
	Action          *run.ActionView
}

// Maintenance bounds of the loop.
const (
	leaseMargin  = 15 * time.Second // unless the loop sets one
	publishGrace = 20 * time.Second // after this the sweep takes a publish for lost
	answerTTL    = 5 * time.Minute  // unless the tool or the agent sets one
	reserve      = 5 * time.Second  // of the function's time that is kept for a last commit
	maxOutput    = 64 << 10         // bytes of a tool's result that are kept
	maxShown     = 8 << 10          // bytes of a result that a review shows
	maxSnapshot  = 800 << 10        // bytes of an approval's arguments and preview, which share one document
)

// Codes of the loop itself: for what does not fit into the store, and for what was cancelled or ended before it was
// done.
const (
	codeTooLarge fault.Code = "too_large"
	// CodeThreadFull is the code for a thread that takes no more messages.
	CodeThreadFull fault.Code = "thread_full"
	codeCancelled  fault.Code = "cancelled"
	codeDeadline   fault.Code = "deadline"
)

// errHeld means that another process holds the run's lease.
var errHeld = fault.New(fault.Tool, fault.CodeLeaseHeld,
	"Another process is working on this run.").After(10 * time.Second)

// Held reports whether [Loop.Advance] stopped because another process moves the run: deliver again later.
func Held(err error) bool { return fault.Is(err, fault.Tool, fault.CodeLeaseHeld) }

// Init sets the optional fields to their defaults. It must be called once before use.
func (l *Loop) Init() *Loop {
	if l.LeaseMargin == 0 {
		l.LeaseMargin = leaseMargin
	}
	if l.Log == nil {
		l.Log = slog.New(slog.DiscardHandler)
	}
	if l.Now == nil {
		l.Now = time.Now
	}
	if l.Random == nil {
		l.Random = rand.Reader
	}
	if l.Sleep == nil {
		l.Sleep = wait.For
	}
	return l
}

// toolOf returns the tool if the run's agent may call it, or nil; what its user calls themselves is not the agent's
// concern. While the agent is not here, what it asked for where it was is taken for its own.
func (l *Loop) toolOf(r run.Run, name string, userInitiated bool) *tool.Tool {
	if its := l.Agents.Get(r.Agent); its != nil && !userInitiated && !its.Has(name) {
		return nil
	}
	return l.Tools[name]
}

// Serves reports whether this process moves the runs of the agent with the name, if it knows it. Those of an agent that
// is not known anywhere are the default function's, which ends them at their deadline.
func (l *Loop) Serves(name string) bool {
	return l.Function == "" || l.Agents.LivesIn(l.Function, name)
}

// limits returns those of the run's agent.
func (ex *execution) limits() agents.Limits { return ex.Agents.Limits(ex.run.Agent) }

func (tx *tx) limits() agents.Limits { return tx.ex.Agents.Limits(tx.run.Agent) }
