// Package registry holds the agents. What differs from one agent to another is data here, and no code anywhere
// else: what it is told, the tools that it is offered, how the model is asked, and its limits. A run names its agent
// (run.Run), and the process that moves the run looks it up.
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

// An Agent is instructions, tools, a model and limits.
type Agent struct {
	Name         string   // [a-z][a-z0-9-]{0,31}
	Description  string   // for the people who choose among agents; at most 1 KiB
	Examples     []string // requests that its users can try, in a line each; shown where a conversation begins
	Instructions Instructions
	Tools        []string // names of tools that it is offered; nil: all that the deployment has
	Served       []string // beside Tools, of tools that come and go (journal.Served): x_* is all that begin with x_
	Ask          []string // those of Tools and Served whose calls need an approval even if the tool's own do not
	Model        model.Settings
	Limits       Limits
	History      History
	Compression  Compression
	OnReject     OnReject
	Effects      policy.Effects // what becomes of calls that would ask for approval; empty: they ask
	Order        Order          // of a turn's calls; empty: Independent

	// Home is the function that moves its runs, of those that infra/functions.json lists with their agents; empty:
	// resume, as for all agents that need no heavy tools.
	Home string

	// Exclusive bounds its threads to one open run: until that has ended, no other begins there.
	Exclusive bool

	// OnTerminal reports that its runs work on a terminal of their user's, which each request for one names.
	OnTerminal bool

	// Plans reports that its runs are sessions: they propose a plan, do nothing but look before their user has
	// confirmed exactly that, and then work its tasks off (run.State.Plan).
	Plans bool

	// Page reports that its runs begin with a web page's message, which brings tools of the page's own. No other
	// request begins one.
	Page bool

	// Origins are the origins of the web pages that it answers, of an agent with Page; nil: of all that may call.
	Origins []string
}

// Limits bound an agent's runs.
type Limits struct {
	ModelCalls   int           // in one run; on the last one tools are switched off
	Contents     int           // bytes of the conversation that the model is told (model.Contents.Fit); 0: no bound
	Deadline     time.Duration // of a run in all, waiting included
	ApprovalTTL  time.Duration // how long an approval may wait
	AnswerTTL    time.Duration // how long a call waits for its client, unless its tool says; 0: 5 minutes
	ModelTimeout time.Duration // of one model call, retries included
	ToolTimeout  time.Duration // of one effect, unless its tool has a timeout of its own
	LongestTool  time.Duration // that a tool's own timeout may be; 0: no limit
	Budget       run.Budget    // what one run may use
	MaxOpen      int           // approvals a user may have open; 0: no cap
	MaxPerDay    int           // approvals a user may be asked for in a day (UTC); 0: no cap
	MaxAsks      int           // approvals that one run may ask for; 0: no cap
	CountAllowed bool          // MaxPerDay bounds all effects of the agent, those too that nobody is asked about
}

// commitTime is what an invocation of a function keeps for its last commits.
const commitTime = 10 * time.Second

// Within returns l with the timeouts of model calls and effects set so that they fit into an invocation of a function
// that may take up to d. With the shortest timeout in use (60 s on Cloud Run) one invocation makes several steps; a
// longer one raises each timeout to at most what a step needs.
func (l Limits) Within(d time.Duration) Limits {
	l.ModelTimeout, l.ToolTimeout = min(time.Minute, d*2/3), min(30*time.Second, d/3)
	l.LongestTool = d - commitTime
	return l
}

// OfTool returns how long one call of the tool may take. The tool may be nil, where it is gone or there is none.
func (l Limits) OfTool(t *tool.Tool) time.Duration {
	switch {
	case t == nil || t.Timeout == 0:
		return l.ToolTimeout
	case l.LongestTool > 0:
		return min(t.Timeout, l.LongestTool)
	}
	return t.Timeout
}

// OfCall returns how long one step of a call with the arguments may take: what of the call's own limit fits into one
// invocation, or what the tool's calls may take. The tool may be nil.
func (l Limits) OfCall(t *tool.Tool, args json.RawMessage) time.Duration {
	if t == nil || t.Limit(args) == 0 {
		return l.OfTool(t)
	}
	if l.LongestTool > 0 {
		return min(t.Limit(args), l.LongestTool)
	}
	return t.Limit(args)
}

// History is what the model is told of the conversation before a run.
type History string

// The kinds of history.
const (
	HistoryWords History = "words" // the words of the newest messages, and what came of the runs between them
	HistoryNone  History = "none"

	// HistoryVerbatim tells the contents of the thread's earlier runs byte for byte: with their calls, the responses
	// to these, and the signatures. A run that another model or service answered is told in words. The thread keeps
	// the contents of the runs of such agents; messages of before are told as with HistoryWords.
	HistoryVerbatim History = "verbatim"
)

// Compression bounds what the model is told with HistoryVerbatim by the model's window. It costs calls of the model,
// which count like any other except against Limits.ModelCalls.
type Compression struct {
	// Window is the number of tokens that the model reads at most. A request that is larger by estimate, however it was
	// compressed, is not sent: the run ends with the code context_full. 0: nothing is compressed or refused.
	Window int

	// Threshold is the share of Window above which a conversation is compressed: the results of tools beyond their
	// newest 50,000 tokens are cut, and if that is not enough, closed turns become a summary. 0: never.
	Threshold float64

	// Carry returns what of the contents that a summary takes the place of is told beside it, in at most maxBytes: a
	// twentieth of Window, or 64 KiB. carried is what it returned of those before them. Nil: nothing.
	Carry func(dropped []json.RawMessage, carried string, maxBytes int) string
}

// OnReject is what becomes of a run whose user rejected one of its calls (REJECT_OUTCOME).
type OnReject string

// The outcomes.
const (
	RejectCompletes OnReject = "completed"
	RejectFails     OnReject = "failed"
	RejectContinues OnReject = "continue" // the model is told, and finishes
)

// Order is the order in which the calls of one answer of the model are carried out.
type Order string

// The orders.
const (
	// Independent lets each call be carried out when its user approves it, whatever becomes of the others.
	Independent Order = "independent"

	// Sequential carries calls out one after the other, as the model gave them, each when those before it have their
	// outcome, whatever that is: none sees or changes what one before it was to change. All approvals are requested at
	// once.
	Sequential Order = "sequential"

	// Strict carries calls out one after the other, as the model gave them. A call is carried out, or its approval
	// requested, only when those before it were done, so that users decide on nothing whose premise may still fail.
	// After one that was rejected, expired or failed, the rest is answered "not run". An outcome that is unknown is
	// waited for.
	Strict Order = "strict"
)

// Has reports whether the agent may call the tool with the name.
func (a *Agent) Has(name string) bool {
	return a.Tools == nil || slices.Contains(a.Tools, name) || among(a.Served, name)
}

// HasServed reports whether it may call tools that come and go.
func (a *Agent) HasServed() bool { return a.Tools == nil || len(a.Served) > 0 }

// Asks reports whether its calls of the tool with the name need an approval because the agent is to ask.
func (a *Agent) Asks(name string) bool { return among(a.Ask, name) }

// among reports whether the name is one of those, or begins as one that ends in an asterisk.
func among(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		begin, all := strings.CutSuffix(n, "*")
		return n == name || all && strings.HasPrefix(name, begin)
	})
}

// Of returns those of the tools that the agent's model may call.
func (a *Agent) Of(tools tool.Set) tool.Set {
	its := tool.Set{}
	for name, t := range tools {
		if !t.UserOnly && a.Has(name) {
			its[name] = t
		}
	}
	return its
}

// Specs returns the specs of the tools that the agent's model is offered, in a fixed order, so that the service may
// cache the beginning of a request.
func (a *Agent) Specs(tools tool.Set) []tool.Spec {
	var specs []tool.Spec
	its := a.Of(tools)
	for _, name := range its.Names() {
		specs = append(specs, its[name].Spec)
	}
	return specs
}

// Spec returns the tool's spec with the approval that the agent's calls need. The agent may be nil, where it is gone.
func (a *Agent) Spec(t *tool.Tool) tool.Spec {
	spec := t.Spec
	if a != nil && a.Asks(t.Name) {
		spec.Approval = tool.Required
	}
	return spec
}

// Answers reports whether the agent answers pages of the origin, or programs where that is empty: only browsers say
// where a request comes from, and only a page can ask in the name of a user who did not mean to.
func (a *Agent) Answers(origin string) bool {
	return a.Origins == nil || origin == "" || slices.Contains(a.Origins, origin)
}

// A Set holds agents by their names.
type Set map[string]*Agent

// Get returns the agent with the name, the assistant for the empty one, or nil.
func (s Set) Get(name string) *Agent { return s[cmp.Or(name, run.Assistant)] }

// Gone returns the error of a conversation with an agent that is not there any more. It says what the user can do,
// because whoever goes on with a conversation has not chosen its agent just now.
func Gone(name string) error {
	return fault.New(fault.Auth, fault.CodeNotFound,
		"The agent %q is not available any more. Please begin a new conversation.", name)
}

// Admits reports whether pages of the origin may use the tool by its name: where agents of pages have it, one of them
// has to answer there.
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

// Barred returns the tools that pages of the origin may not use, whoever calls them there.
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

// Elsewhere returns the error of a page whose origin the agent does not answer.
func Elsewhere(name string) error {
	return fault.New(fault.Auth, fault.CodeOrigin, "The agent %q does not answer on this site.", name)
}

// DefaultHome is the function that moves the runs of all agents that have no other home, and of those that are not
// known.
const DefaultHome = "resume"

// Home returns the function that moves the runs of the agent with the name.
func (s Set) Home(name string) string {
	if a := s.Get(name); a != nil && a.Home != "" {
		return a.Home
	}
	return DefaultHome
}

// LivesIn reports whether the function moves the runs of the agent with the name: its home does. A function that is
// no function's home, such as the one that begins runs, moves the same as resume.
func (s Set) LivesIn(function, name string) bool {
	for _, a := range s {
		if a.Home == function {
			return s.Home(name) == function
		}
	}
	return s.Home(name) == DefaultHome
}

// Names returns the agents' names in sorted order.
func (s Set) Names() []string { return slices.Sorted(maps.Keys(s)) }

// Limits returns the limits of the agent with the name. For an agent that is not here they are what settling a call, or
// ending the run, may take.
func (s Set) Limits(name string) Limits {
	if a := s.Get(name); a != nil {
		return a.Limits
	}
	return Limits{ApprovalTTL: 24 * time.Hour}.Within(time.Minute)
}
