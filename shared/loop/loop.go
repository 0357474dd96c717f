// Package loop moves runs: [Loop.Start], [Loop.Advance], [Loop.Resolve], [Loop.Answer], [Loop.Cancel] and [Loop.Sweep].
// Each consists of transitions. A transition is decided in memory and made durable by one atomic commit (see
// transition.go), so a process may die between any two instructions, and the next one reads the events and continues.
//
//   - Only the holder of a run's lease moves it. Lease times are the store's, so workers' clocks do not matter.
//   - An effect takes place only after a commit that records who carries it out ([agent.Started]). An effect that has
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

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/policy"
	"github.com/countersign-run/countersign/shared/queue"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/wait"
)

// RejectOutcome says how a run ends after its user rejected a call (contract §3, REJECT_OUTCOME).
type RejectOutcome string

// The outcomes.
const (
	RejectCompletes RejectOutcome = "completed"
	RejectFails     RejectOutcome = "failed"
	RejectContinues RejectOutcome = "continue" // the model gets the rejection as the call's response, and finishes
)

// Profile is what differs from one kind of agent to another.
type Profile struct {
	Persona       string        // who the assistant is; the rules are appended to it
	MaxModelCalls int           // in one run; on the last one tools are switched off
	ApprovalTTL   time.Duration // how long an approval may wait
	AnswerTTL     time.Duration // how long a call waits for its client, where its tool does not say; 0 is 5 minutes
	RejectOutcome RejectOutcome
	Deadline      time.Duration // how long a run may take in all, waiting included
	MaxContents   int           // bytes of the conversation that the model gets (model.Contents.Fit); 0 means no bound
	ModelTimeout  time.Duration // of one model call, retries included
	ToolTimeout   time.Duration // of one effect, unless its tool has a timeout of its own
	LongestTool   time.Duration // that a tool's own timeout may be; 0 means no limit
	LeaseMargin   time.Duration // how long a lease outlives the step that it covers; 0 means 15 seconds
	MaxOpen       int           // approvals a user may have open; 0 means no cap
	MaxPerDay     int           // approvals a user may be asked for in a day (UTC); 0 means no cap
	Limits        agent.Limits  // what a user may use
}

// LeastCall is the shortest timeout of a function in which a step of a run fits.
const LeastCall = 30 * time.Second

// Within returns p with the timeouts of model calls and effects set so that they fit into an invocation of a function
// that may take up to d. With the shortest timeout in use (60 s on Cloud Run) one invocation makes several steps; a
// longer one raises each timeout to at most what a step needs.
func (p Profile) Within(d time.Duration) Profile {
	p.ModelTimeout, p.ToolTimeout = min(time.Minute, d*2/3), min(30*time.Second, d/3)
	p.LongestTool = d - 2*reserve
	return p
}

// toolTimeout returns how long one call of the tool may take. The tool may be nil, where it is gone or there is none.
func (p Profile) toolTimeout(t *tool.Tool) time.Duration {
	switch {
	case t == nil || t.Timeout == 0:
		return p.ToolTimeout
	case p.LongestTool > 0:
		return min(t.Timeout, p.LongestTool)
	}
	return t.Timeout
}

// Loop moves runs of one profile. The fields from Log on are optional.
type Loop struct {
	Store   store.Store
	Queue   queue.Queue
	Model   model.Model
	Tools   tool.Set
	Rules   policy.Rules
	Profile Profile

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
	Status          agent.RunStatus
	Delta           string
	Action          *agent.ActionView
}

// Maintenance bounds of the loop.
const (
	leaseMargin  = 15 * time.Second // unless the profile sets one
	publishGrace = 20 * time.Second // after this the sweep takes a publish for lost
	answerTTL    = 5 * time.Minute  // unless the profile sets one
	reserve      = 5 * time.Second  // of the function's time that is kept for a last commit
	maxCalls     = 16               // function calls in one turn of the model
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
	if l.Profile.LeaseMargin == 0 {
		l.Profile.LeaseMargin = leaseMargin
	}
	if l.Profile.AnswerTTL == 0 {
		l.Profile.AnswerTTL = answerTTL
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
