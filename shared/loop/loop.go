// Package loop moves runs. Start, Advance, Resolve, Cancel and Sweep are all there is; each ends in transitions, and a
// transition is decided in memory and made true by one atomic commit (see transition.go), so a process may die between
// any two instructions and the next one reads the events and goes on.
//
//   - A run is moved by the holder of its lease alone. Lease times are the store's, so workers' clocks do not matter.
//   - An effect happens only after a commit that says who does it (Started). An effect found started and without an
//     outcome is never repeated on a guess: the tool settles it (Reconcile), or a person does (a review).
//   - What somebody else must answer waits in an approval; Resolve records the answer and does nothing else.
//   - The run document's field "due" says when somebody should look at it again. It is the outbox: Sweep asks for what
//     is overdue, whether a publish was lost, a worker died, or an approval expired.
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

// RejectOutcome says how a run ends whose user said no (contract §3, REJECT_OUTCOME).
type RejectOutcome string

// The outcomes.
const (
	RejectCompletes RejectOutcome = "completed"
	RejectFails     RejectOutcome = "failed"
	RejectContinues RejectOutcome = "continue" // the model is told, and finishes
)

// Profile is what differs from one kind of agent to another.
type Profile struct {
	Persona       string        // who the assistant is; the rules are added to it
	MaxModelCalls int           // in one run; on the last one tools are switched off
	ApprovalTTL   time.Duration // how long an approval may wait
	RejectOutcome RejectOutcome
	Deadline      time.Duration // how long a run may take in all, waiting included
	MaxContents   int           // bytes of the conversation that the model is told (model.Contents.Fit); 0 is no bound
	ModelTimeout  time.Duration // of one model call, retries included
	ToolTimeout   time.Duration // of one effect
	LeaseMargin   time.Duration // a lease outlives the step that it covers by this; 0 is 15 seconds
	MaxOpen       int           // approvals a user may have open; 0 is no cap
	MaxPerDay     int           // approvals a user may be asked for a day (UTC); 0 is no cap
	Limits        agent.Limits  // what a user may use
}

// LeastCall is how long a call of the function must be able to take, or no step of a run fits into it.
const LeastCall = 30 * time.Second

// Within gives the steps as much time as calls of a function leave them that take up to d: at the least that is given
// (60 s on Cloud Run) a run makes several steps in one call, and where there is more, each has what it may need at
// most.
func (p Profile) Within(d time.Duration) Profile {
	p.ModelTimeout, p.ToolTimeout = min(time.Minute, d*2/3), min(30*time.Second, d/3)
	return p
}

// Loop moves runs of one profile. The fields from Log on may be left out.
type Loop struct {
	Store   store.Store
	Queue   queue.Queue
	Model   model.Model
	Tools   tool.Set
	Rules   policy.Rules
	Profile Profile

	Log    *slog.Logger
	Now    func() time.Time // for durations and, corrected by the store's clock, for leases
	Random io.Reader        // for ids and the spread of retries
	Sleep  func(context.Context, time.Duration) error
}

// Sink hears what happens while a run moves: after it was committed, in order, on the mover's goroutine. A sink must
// not block for long; nothing that it does stops the run.
type Sink func(Update)

// Update is one thing that a sink hears of a run: a status, a piece of the model's text, or an action as it stands now.
type Update struct {
	RunID, ThreadID string
	Status          agent.RunStatus
	Delta           string
	Action          *agent.ActionView
}

// Maintenance bounds of the loop.
const (
	leaseMargin  = 15 * time.Second // where the profile gives none
	publishGrace = 20 * time.Second // after which the sweep takes a publish for lost
	reserve      = 5 * time.Second  // of the function's time is kept for a last commit
	maxCalls     = 16               // function calls in one turn of the model
	maxOutput    = 64 << 10         // bytes of a tool's result that are kept
	maxSnapshot  = 800 << 10        // bytes of an approval's arguments and preview, which are one document
)

// Codes of the loop itself: of what does not fit into the store, and of what was cancelled or ended before it was done.
const (
	codeTooLarge fault.Code = "too_large"
	// CodeThreadFull is of a thread that takes no more messages.
	CodeThreadFull fault.Code = "thread_full"
	codeCancelled  fault.Code = "cancelled"
	codeDeadline   fault.Code = "deadline"
)

// errHeld says that another process moves the run.
var errHeld = fault.New(fault.Tool, fault.CodeLeaseHeld,
	"Another process is working on this run.").After(10 * time.Second)

// Held reports whether Advance stopped because another process moves the run: deliver again later.
func Held(err error) bool { return fault.Is(err, fault.Tool, fault.CodeLeaseHeld) }

// Init fills what was left out. It must be called once before use.
func (l *Loop) Init() *Loop {
	if l.Profile.LeaseMargin == 0 {
		l.Profile.LeaseMargin = leaseMargin
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
