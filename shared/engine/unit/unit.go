// Package unit is the unit of work of a run. An [Execution] is one process's work on a run: the documents that it has
// read, and the state in them. Every change of a run is a transition. A transition is decided in memory, on a [Tx], and
// becomes durable by one atomic commit. If the commit loses a race, the transition is decided again on fresh documents.
// The package guarantees that committed work is found again: it keeps the lease, which names the process that advances
// the run, and the field "due", which lets the sweep find a run that no process advances.
package unit

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"time"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/engine/observe"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/quota"
	"github.com/countersign-run/countersign/shared/engine/toolbox"
	"github.com/countersign-run/countersign/shared/notify/event"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/blob"
)

// Env holds the dependencies and settings of this package and those above it. Sleep and the fields from Log on have
// defaults ([Env.Init]); Files, Served, Sweeper, Notices and Reminders may be nil.
type Env struct {
	Store store.Store
	Files blob.Store // has the bytes of uploaded files; nil: none can be uploaded
	Queue queue.Queue
	Model model.Model
	// Fallbacks are models of the same service. They are asked in order while a run's own model is overloaded or has no
	// quota left.
	Fallbacks []string
	// Models are models of the same service that a request can choose instead of its agent's.
	Models    []string
	Tools     tool.Set
	Rules     policy.Rules
	Decisions *decision.Ring  // signs and checks what users decide; nil: nothing is signed or checked
	Strong    *passkey.Strong // which decisions need a passkey; nil: none; if set, Decisions is too
	Dynamic   toolbox.Dynamic // tools that come and go; nil: none

	Agents registry.Set // a run whose agent is missing can be read, decided, cancelled and ended, but not advanced

	// Function is the name of the deployed function that this process is. The process advances the runs of the agents
	// of that function ([registry.Set.LivesIn]). If it is empty, the process advances the runs of all agents.
	Function string

	// Sweeper takes work that a sweep has no time for. If it is nil, the sweep continues on its own as far as its time
	// allows.
	Sweeper queue.Sweeper

	// Publisher publishes events about runs; nil publishes none. Console is the address of the console that the events
	// link to.
	Publisher event.Publisher
	Console   string

	// Reminding says when users get e-mails about waiting approvals. Reminders sends them; it is nil in a process that
	// sends none.
	Reminding run.Reminding
	Reminders Reminders

	AuditDays  int        // number of days that the audit log of a run is kept; 0: forever
	UserLimits run.Limits // usage limits of a user, across all agents
	// ModelPatience is how long a run continues to ask a model whose quota is used up, or whose service asks for a
	// pause. Zero: the run fails at once.
	ModelPatience time.Duration
	Quota         *quota.Budget // the model's quota, which all instances share; nil: no limit
	// Services are the quotas of services that tools call ([tool.Quota]), which all instances share.
	Services    map[string]*quota.Budget
	UndoWindow  time.Duration // minimum undo window between an approval and its effect (approval.MaxUndoWindow)
	LeaseMargin time.Duration // extra time of a lease after its step's limit; 0: 15 seconds
	LeasePeriod time.Duration // maximum length of one lease; longer steps renew it; 0: one minute

	// TakeBack withdraws a waiting proposal, because its user says so ([toolbox.Source]). Package loop sets it.
	TakeBack func(ctx context.Context, uid, approvalID string) error

	observe.Recorder // makes spans and measurements; its Clock is Now

	Log    *slog.Logger
	Now    func() time.Time // for durations and, adjusted to the store's clock, for leases
	Random io.Reader        // for IDs and the jitter of retries
	Sleep  func(context.Context, time.Duration) error
}

// Reminders sends users e-mails about waiting approvals (package reminder).
type Reminders interface {
	// Remind sends the user an e-mail, unless it is too soon or another process sends it.
	Remind(ctx context.Context, uid string, when run.Reminding) error
}

// Sink receives updates while a run advances. It gets them in order, after their commit, on the goroutine that advances
// the run. A sink must not block for long and cannot stop the run.
type Sink func(Update)

// Update is one piece of news for a reader of an advancing run: a status, a piece of the model's text, an action in its
// present state, or a piece of a call's output. The fields from Beyond on are for readers within this process only.
type Update struct {
	RunID, ThreadID string
	Seq             int64 // number of the stored event behind Action or Finished; 0: none
	Status          run.Status
	Delta           string
	Thought         string             // a piece of the model's visible thoughts, which precede the text
	Files           []attachment.Facts // of an answer or a result; they are stored
	Action          *run.ActionView
	Output          *Output
	Compressed      *run.Compressed
	Beyond          string      // text beyond the limit of an answer (run.MaxMessageText), in pieces like Delta
	Started         *Call       // a call that is about to be executed
	Finished        *CallEnd    // with Action: a call that has its outcome, even if it was not executed
	Events          []run.Event // the events that one commit added to the run; sent before the updates about them
}

// Call is a call in the form that its tool receives.
type Call struct {
	ActionID, Tool string
	Args           json.RawMessage // canonical; nil if the model's arguments could not be read
}

// CallEnd is the outcome of a call.
type CallEnd struct {
	Call
	Result    json.RawMessage // next to an error: the result before the failure
	Truncated bool            // Result is cut
	Err       error           // the tool's own error value if available; otherwise the recorded one
}

// Output is a piece of what a call prints while it runs. It is either text, or, for a tool that keeps its output, bytes
// that are stored in the action's output at Offset.
type Output struct {
	ActionID string
	Text     string
	Offset   int64
	Data     []byte // nil: use Text
}

// Time limits of this package.
const (
	leaseMargin = 15 * time.Second // default of Env.LeaseMargin
	leasePeriod = time.Minute      // default of Env.LeasePeriod
	// PublishGrace is the time after which the sweep treats a published resume as lost.
	PublishGrace = 20 * time.Second
	// Reserve is the part of the function's time that is kept for a last commit.
	Reserve = 5 * time.Second
)

// Init sets the optional fields to their defaults and returns l.
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
	l.Clock = l.Now
	if l.Random == nil {
		l.Random = rand.Reader
	}
	if l.Sleep == nil {
		l.Sleep = wait.For
	}
	return l
}

// toolSource returns the tools of this process.
func (l *Env) toolSource() toolbox.Source {
	return toolbox.Source{Tools: l.Tools, Served: l.Dynamic, Agents: l.Agents, TakeBack: l.TakeBack}
}

// AwaitTools returns the available tools after every server has been asked, or has had time to answer.
func (l *Env) AwaitTools(ctx context.Context) tool.Set { return l.toolSource().Await(ctx) }

// Serves reports whether this process advances the runs of the named agent, if it knows the agent. The default function
// serves unknown agents and ends their runs at the deadline.
func (l *Env) Serves(name string) bool {
	return l.Function == "" || l.Agents.LivesIn(l.Function, name)
}

// Limits returns the limits of the run's agent.
func (ex *Execution) Limits() registry.Limits { return ex.Agents.Limits(ex.Run.Agent) }

// Limits returns the limits of the run's agent. It also works in a transition that creates the run.
func (tx *Tx) Limits() registry.Limits { return tx.Ex.Agents.Limits(tx.Run.Agent) }

// Jitter returns a random duration below limit.
func (l *Env) Jitter(limit time.Duration) time.Duration {
	var b [8]byte
	if _, err := l.Random.Read(b[:]); err != nil || limit <= 0 {
		return limit
	}
	return time.Duration(binary.LittleEndian.Uint64(b[:]) % uint64(limit))
}

// LogPanic logs a panic of a tool's function with its stack. The user sees an ordinary failure.
func (l *Env) LogPanic(ctx context.Context, id string, err error) {
	if text := tool.PanicText(err); text != "" {
		l.Log.ErrorContext(ctx, "a tool panicked", "counter", "tool_panic", "actionId", id, "stack", text)
	}
}
