// Package registry holds the agents. All differences between agents are data in this package: their instructions,
// tools, model settings and limits. A run names its agent (run.Run), and the process that advances the run looks the
// agent up.
package registry

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// An Agent is a set of instructions, tools, model settings and limits.
type Agent struct {
	Name         string   // [a-z][a-z0-9-]{0,31}
	Description  string   // for the people who choose an agent; at most 1 KiB
	Examples     []string // requests that users can try, one line each; shown when a conversation begins
	Instructions Instructions
	// Present returns what the model reads behind the history, before the prompt, such as the user's time (State.Here).
	// Nil means nothing. In a session it follows the instructions.
	Present     func(State) string
	Tools       []string // names of its tools; nil: all tools of the deployment
	Dynamic     []string // beside Tools: tools that come and go (toolbox.Served); x_* means all that begin with x_
	Ask         []string // names in Tools and Served whose calls always need an approval
	Model       model.Settings
	Limits      Limits
	History     History
	Compression Compression
	OnReject    OnReject
	Effects     policy.Effects // decision about calls that would need an approval; empty: ask
	Order       Order          // order of a turn's calls; empty: Independent

	// Worker is the function that advances the agent's runs, one of those in infra/functions.json. Empty means resume,
	// which is right for all agents without heavy tools.
	Worker string

	// Exclusive allows only one open run in each thread.
	Exclusive bool

	// OnTerminal means that the agent's runs work on a terminal of the user. Each request names the terminal.
	OnTerminal bool

	// Plans means that the agent's runs are planner sessions. They propose a plan, only read until the user has
	// confirmed it, and then work on its tasks (run.State.Plan).
	Plans bool

	// Page means that the agent's runs begin with a message from a web page, which brings the page's own tools. No
	// other request can begin one.
	Page bool

	// ResponseSchema is the JSON Schema of the answers of the agent's runs, unless the request has one
	// (run.Input.Answer). Nil means that the answers are text. An agent with Page or Plans has none.
	ResponseSchema json.RawMessage

	// Origins are the origins of the web pages that an agent with Page answers. Nil means all permitted origins.
	Origins []string
}

// Limits are the limits of an agent's runs.
type Limits struct {
	ModelCalls   int           // maximum in one run; tools are disabled in the last one
	Contents     int           // maximum bytes of the conversation for the model (model.Contents.Fit); 0: no limit
	Deadline     time.Duration // maximum duration of a run, including waiting
	ApprovalTTL  time.Duration // how long an approval can wait
	AnswerTTL    time.Duration // how long a call waits for its client, unless its tool sets that; 0: 5 minutes
	ModelTimeout time.Duration // of one model call, including retries
	ToolTimeout  time.Duration // of one effect, unless its tool has a timeout
	LongestTool  time.Duration // maximum timeout that a tool can set; 0: no limit
	Budget       run.Budget    // what one run can use
	MaxOpen      int           // maximum open approvals of a user; 0: no limit
	MaxPerDay    int           // maximum approvals requested from a user in a day (UTC); 0: no limit
	MaxAsks      int           // maximum approvals requested by one run; 0: no limit
	CountAllowed bool          // MaxPerDay limits all effects of the agent, including those without an approval
}

// commitTime is the part of a function's invocation that is reserved for its last commits.
const commitTime = 10 * time.Second

// Within returns l with timeouts of model calls and effects that fit in a function invocation of at most d. With the
// shortest timeout in use (60 s on Cloud Run), several steps fit in one invocation. A longer d raises each timeout, up
// to what one step needs.
func (l Limits) Within(d time.Duration) Limits {
	l.ModelTimeout, l.ToolTimeout = min(time.Minute, d*2/3), min(30*time.Second, d/3)
	l.LongestTool = d - commitTime
	return l
}

// OfTool returns the maximum duration of one call of the tool. t is nil if the tool no longer exists.
func (l Limits) OfTool(t *tool.Tool) time.Duration {
	switch {
	case t == nil || t.Timeout == 0:
		return l.ToolTimeout
	case l.LongestTool > 0:
		return min(t.Timeout, l.LongestTool)
	}
	return t.Timeout
}

// OfCall returns the maximum duration of one step of a call. If the call has its own limit, it is the part of it that
// fits in one invocation. Otherwise it is that of the tool's calls. t may be nil.
func (l Limits) OfCall(t *tool.Tool, args json.RawMessage) time.Duration {
	if t == nil || t.Limit(args) == 0 {
		return l.OfTool(t)
	}
	if l.LongestTool > 0 {
		return min(t.Limit(args), l.LongestTool)
	}
	return t.Limit(args)
}

// History is the form in which the model gets the earlier conversation.
type History string

// The kinds of history.
const (
	HistoryWords History = "words" // the text of the newest messages, and the outcomes of the runs between them
	HistoryNone  History = "none"

	// HistoryVerbatim replays the contents of the thread's earlier runs byte for byte, with calls, responses and
	// signatures. A run that another model or service answered is described in words. The thread stores the contents of
	// these agents' runs; older messages are handled as with HistoryWords.
	HistoryVerbatim History = "verbatim"
)

// Compression limits what the model gets with HistoryVerbatim by the model's context window. It costs model calls,
// which count like any others except against Limits.ModelCalls.
type Compression struct {
	// Window is the model's context window in tokens. If the estimate of a request still exceeds it after compression,
	// the request is not sent and the run ends with the code context_full. 0 disables both.
	Window int

	// Threshold is the share of Window above which a conversation is compressed. First, tool results beyond the newest
	// 50,000 tokens are cut. If that is not enough, closed turns are replaced by a summary. 0 means never.
	Threshold float64

	// Carry returns text from the dropped contents that is kept beside their summary. carried is what it returned for
	// earlier contents. The result has at most maxBytes bytes, which is a twentieth of Window or 64 KiB. If Carry is
	// nil, nothing is kept.
	Carry func(dropped []json.RawMessage, carried string, maxBytes int) string
}

// OnReject decides what happens to a run whose user rejected one of its calls (REJECT_OUTCOME).
type OnReject string

// The values of OnReject.
const (
	RejectCompletes OnReject = "completed"
	RejectFails     OnReject = "failed"
	RejectContinues OnReject = "continue" // the model reads the rejection and finishes
)

// Order is the order in which the calls of one model answer run.
type Order string

// The values of Order.
const (
	// Independent lets each call run when its user approves it, whatever happens to the others.
	Independent Order = "independent"

	// Sequential runs the calls one after the other in the model's order. Each call starts when the earlier ones have
	// an outcome of any kind, so no call misses a change that an earlier one was to make. All approvals are requested
	// at once.
	Sequential Order = "sequential"

	// Strict runs the calls one after the other in the model's order. A call runs, or its approval is requested, only
	// when the earlier ones were done, so users never decide on a call whose premise may still fail. After a call that
	// was rejected, expired or failed, the rest is answered with "not run". An unknown outcome must be resolved first.
	Strict Order = "strict"
)

// Has reports whether the agent has the named tool.
func (a *Agent) Has(name string) bool {
	return a.Tools == nil || slices.Contains(a.Tools, name) || among(a.Dynamic, name)
}

// HasDynamic reports whether the agent can call tools that come and go.
func (a *Agent) HasDynamic() bool { return a.Tools == nil || len(a.Dynamic) > 0 }

// Asks reports whether the agent requires an approval for its calls of the named tool.
func (a *Agent) Asks(name string) bool { return among(a.Ask, name) }

// among reports whether the name is in names, or begins with a prefix that one of them gives with a final asterisk.
func among(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		begin, all := strings.CutSuffix(n, "*")
		return n == name || all && strings.HasPrefix(name, begin)
	})
}

// Of returns the tools that the agent's model can call.
func (a *Agent) Of(tools tool.Set) tool.Set {
	offered := tool.Set{}
	for name, t := range tools {
		if !t.UserOnly && a.Has(name) {
			offered[name] = t
		}
	}
	return offered
}

// Specs returns the specs of the tools that the agent's model can call. The order is fixed, so the service can cache
// the beginning of a request.
func (a *Agent) Specs(tools tool.Set) []tool.Spec {
	var specs []tool.Spec
	offered := a.Of(tools)
	for _, name := range offered.Names() {
		specs = append(specs, offered[name].Spec)
	}
	return specs
}

// Spec returns the tool's spec with the approval that the agent's calls need. a is nil if the agent no longer exists.
func (a *Agent) Spec(t *tool.Tool) tool.Spec {
	spec := t.Spec
	if a != nil && a.Asks(t.Name) {
		spec.Approval = tool.Required
	}
	return spec
}

// Answers reports whether the agent answers pages of the origin. An empty origin means a program, which is always
// answered: only browsers send an origin, and only a page can send a request that its user did not intend.
func (a *Agent) Answers(origin string) bool {
	return a.Origins == nil || origin == "" || slices.Contains(a.Origins, origin)
}

// A Set holds agents by name.
type Set map[string]*Agent

// Get returns the named agent, the assistant for an empty name, or nil.
func (s Set) Get(name string) *Agent { return s[cmp.Or(name, run.Assistant)] }

// Gone returns the error for a conversation with an agent that no longer exists. It tells the user what to do, because
// a user who continues a conversation did not just choose its agent.
func Gone(name string) error {
	return fault.New(fault.Auth, fault.CodeNotFound,
		"The agent %q is no longer available. Please begin a new conversation.", name)
}

// Admits reports whether pages of the origin can use the named tool. If agents of pages have the tool, one of them must
// answer the origin.
func (s Set) Admits(origin, tool string) bool {
	free := true
	for _, a := range s {
		if !a.Page || !a.Has(tool) {
			continue
		}
		if a.Answers(origin) {
			return true
		}
		free = false
	}
	return free
}

// Barred returns the tools that no call from a page of the origin can use.
func (s Set) Barred(origin string) (names []string) {
	for _, a := range s {
		if !a.Page || a.Origins == nil {
			continue
		}
		for _, name := range a.Tools {
			if !s.Admits(origin, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Elsewhere returns the error for a page whose origin the agent does not answer.
func Elsewhere(name string) error {
	return fault.New(fault.Auth, fault.CodeOrigin, "The agent %q is not available on this site.", name)
}

// DefaultWorker is the function that advances the runs of agents without a separate worker, and of unknown agents.
const DefaultWorker = "resume"

// Worker returns the function that advances the named agent's runs.
func (s Set) Worker(name string) string {
	if a := s.Get(name); a != nil && a.Worker != "" {
		return a.Worker
	}
	return DefaultWorker
}

// LivesIn reports whether the function advances the named agent's runs. A function that is no agent's worker, such as
// the one that begins runs, advances the same runs as resume.
func (s Set) LivesIn(function, name string) bool {
	for _, a := range s {
		if a.Worker == function {
			return s.Worker(name) == function
		}
	}
	return s.Worker(name) == DefaultWorker
}

// Names returns the sorted names of the agents.
func (s Set) Names() []string { return slices.Sorted(maps.Keys(s)) }

// Limits returns the limits of the named agent. For an unknown agent, they are enough for reconciling a call and for
// ending the run.
func (s Set) Limits(name string) Limits {
	if a := s.Get(name); a != nil {
		return a.Limits
	}
	return Limits{ApprovalTTL: 24 * time.Hour}.Within(time.Minute)
}
