// Package journal is the unit of work of a run. An [Execution] is one process's hold on a run: the documents that it
// has read, and what they say. Everything that happens to a run is a transition: decided in memory, on a [Tx], and made
// durable by one atomic commit; one that loses a race is decided again on fresh documents. The package promises that
// whatever was committed is found again: it keeps the lease that says who moves the run, and the field "due" by which
// the sweep finds a run that nobody moves.
package journal

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-run/countersign/shared/agents"
	"github.com/countersign-run/countersign/shared/metrics"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/notice"
	"github.com/countersign-run/countersign/shared/policy"
	"github.com/countersign-run/countersign/shared/queue"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/wait"
)

// Env is what runs are moved with, by this package and those above it. The fields from Log on are optional.
type Env struct {
	Store  store.Store
	Queue  queue.Queue
	Model  model.Model
	Tools  tool.Set
	Rules  policy.Rules
	Served Served     // more tools, that come and go; nil: none
	Agents agents.Set // without the agent of a run, it is read, decided, cancelled and ended, and not moved

	// Function is the deployed function that this process is; it moves the runs of the agents that live there
	// ([agents.Set.LivesIn]). Empty: the runs of all agents.
	Function string

	// Sweeper takes what a sweep has no time for. Without one the sweep goes on by itself, as far as its time reaches.
	Sweeper queue.Sweeper

	// Notices takes what others are told of runs, and Console is the address that they are led to. Nil: nobody is told.
	Notices notice.Publisher
	Console string

	// Reminding says when users are mailed of what has waited for a while, and Reminders sends these mails. It is nil
	// in a process that sends none.
	Reminding run.Reminding
	Reminders Reminders

	AuditDays   int           // for how many days the audit of a run is kept; 0: for good
	UserLimits  run.Limits    // what a user may use, whichever agents they ask
	Hold        time.Duration // the least time between an approval and what it has carried out (approval.MaxHold)
	LeaseMargin time.Duration // a lease outlives the step that it covers by this; 0: 15 seconds
	LeasePeriod time.Duration // a longer step is covered by leases of this length, one after the other; 0: a minute

	// Tracer makes the spans of a run: invoke_agent for each process that moves it, and within that chat and
	// execute_tool. Nil makes none. They have content, what was said and done, only with TraceContent.
	Tracer       trace.Tracer
	TraceContent bool

	Metrics *metrics.Metrics // what is measured of runs; nil: nothing is

	Log    *slog.Logger
	Now    func() time.Time // for durations and, adjusted to the store's clock, for leases
	Random io.Reader        // for ids and the jitter of retries
	Sleep  func(context.Context, time.Duration) error
}

// Sink receives what happens while a run moves, in order, after it was committed, on the goroutine that moves the run.
// A sink must not block for long, and it cannot stop the run.
type Sink func(Update)

// Update is what a reader of a moving run gets: a status, a piece of the model's text, an action in its present state,
// or a piece of a call's output. What follows these is for readers within this process alone.
type Update struct {
	RunID, ThreadID string
	Seq             int64 // of the stored event that Action or Finished tells of; 0: it is of none
	Status          run.Status
	Delta           string
	Action          *run.ActionView
	Output          *Output
	Compressed      *run.Compressed
	Beyond          string      // a piece of the text, as Delta, beyond what an answer shows (run.MaxMessageText)
	Started         *Call       // a call that is about to be carried out
	Finished        *CallEnd    // beside Action: a call that has its outcome, be it that it was not carried out
	Events          []run.Event // that one commit has added to the run, before the updates that tell of them
}

// Call is a call as its tool gets it.
type Call struct {
	ActionID, Tool string
	Args           json.RawMessage // canonical; nil where the model's could not be read
}

// CallEnd is the outcome of a call.
type CallEnd struct {
	Call
	Result    json.RawMessage // beside an error: what the call returned before it failed
	Truncated bool            // Result is the beginning of what the call returned
	Err       error           // the very error that the tool returned; else what the run has recorded of it
}

// Output is a piece of what a call prints while it is carried out: a text, or of a call whose tool keeps its output
// bytes, which are stored in the action's output and stand there from Offset on.
type Output struct {
	ActionID string
	Text     string
	Offset   int64
	Data     []byte // nil: Text
}

// Bounds of the journal.
const (
	leaseMargin  = 15 * time.Second // unless the loop sets one
	leasePeriod  = time.Minute      // likewise
	publishGrace = 20 * time.Second // after this the sweep takes a publish for lost
	// Reserve is what is kept of the function's time for a last commit.
	Reserve = 5 * time.Second
)

// Init sets the optional fields to their defaults.
func (l *Env) Init() *Env {
	if l.LeaseMargin == 0 {
		l.LeaseMargin = leaseMargin
	}
	if l.LeasePeriod == 0 {
		l.LeasePeriod = leasePeriod
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

// Serves reports whether this process moves the runs of the agent with the name, if it knows it. Those of an agent that
// is not known anywhere are the default function's, which ends them at their deadline.
func (l *Env) Serves(name string) bool {
	return l.Function == "" || l.Agents.LivesIn(l.Function, name)
}

// Limits returns those of the run's agent.
func (ex *Execution) Limits() agents.Limits { return ex.Agents.Limits(ex.Run.Agent) }

// Limits returns the limits of the run's agent, which a transition that creates the run has just set.
func (tx *Tx) Limits() agents.Limits { return tx.Ex.Agents.Limits(tx.Run.Agent) }

// Jitter returns a random duration below limit.
func (l *Env) Jitter(limit time.Duration) time.Duration {
	var b [8]byte
	if _, err := l.Random.Read(b[:]); err != nil || limit <= 0 {
		return limit
	}
	return time.Duration(binary.LittleEndian.Uint64(b[:]) % uint64(limit))
}

// LogPanic logs a panic of a tool's function with its stack: its user sees a failure like any other.
func (l *Env) LogPanic(ctx context.Context, id string, err error) {
	if text := tool.PanicText(err); text != "" {
		l.Log.ErrorContext(ctx, "a tool panicked", "counter", "tool_panic", "actionId", id, "stack", text)
	}
}
