package countersign

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/address"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/countersign/internal/bridge"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/observe"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/tools/skill"
)

// Options are what an agent is made of. The zero value is an agent without tools whose sessions live in memory and that
// asks the model which the environment configures.
type Options struct {
	// Name tells the agents of one store apart: up to 28 small letters, digits and hyphens. An agent goes on with the
	// sessions of its name alone. Empty: agent.
	Name string

	Instructions string // the agent's instructions; or
	// InstructionsFunc returns the instructions. It is called once for each session and process (a process remembers
	// 10,000 sessions). A run keeps the text it began with, even if another process continues it.
	InstructionsFunc func(ctx context.Context, s *SessionContext) (string, error)

	Tools  []*Tool  // of [DefineTool], [DefineEffect] and package mcp
	Skills []Skills // guidance that the model reads where a task calls for it

	Model    string   // its name; empty: the provider's own
	Provider Provider // who is asked; nil: what the environment configures, see [Gemini]

	Dir      string   // where SessionContext.FS is, and commands run; empty: the working directory
	Commands []string // what SessionContext.Shell runs: "git log", with harmless options; "sh -c ...", with anything

	LogLevel LogLevel     // what the agent logs of itself; empty: silent
	Logger   *slog.Logger // where to, behind a redaction of what looks like a secret; nil: stderr
	Debug    bool         // logs with LogLevel debug, and the sizes of each request to the model

	// Store keeps the sessions; nil keeps them in memory. Close leaves it open.
	Store store.Store

	// Approve is asked about each call that waits. It is called after the question is stored, on the goroutine that
	// sends or ranges over the stream, and may take as long as it likes: a process that is killed meanwhile loses
	// nothing. Its error ends the stream, and the call goes on waiting. Nil: [Later].
	Approve func(ctx context.Context, a Approval) (Decision, error)
	Effects Effects // what becomes of effects that would wait
	Policy  Policy  // whom effects reach; it comes before Approve and Effects, always
	Budget  Budget  // what one run may use
	Hooks   Hooks   // functions around the model and the tools

	// CompressionThreshold is the share of the model's window above which a session is compressed before the model is
	// asked: results of tools are cut, and then closed turns become a summary. 0: 0.5; -1: never.
	CompressionThreshold float64

	MaxModelCalls int // in one run; on the last one tools are switched off. 1 to 50; 0: 50
	// MaxOutputTokens bounds one answer of the model, thoughts included; at most 1048576. 0: the service's own bound.
	MaxOutputTokens int

	ToolTimeout time.Duration // of one call of a tool; 1 s to 10 min; 0: 2 min
	ApprovalTTL time.Duration // how long a call waits for its decision; at most 30 days; 0: 7 days
	Deadline    time.Duration // of a run, with all its waiting; at most 90 days; 0: 7 days

	// TracerProvider makes OpenTelemetry's spans: invoke_agent for each call that moves a run, and within that chat for
	// each request to the model and execute_tool for each call of a tool, with the attributes of the semantic
	// conventions for generative AI. The conversation id is the session's; no span has content. A run that another call
	// or process goes on with links to its first span. Nil: none are made.
	TracerProvider trace.TracerProvider
}

// Effects says what becomes of the effects of an agent.
type Effects string

// The values of Effects.
const (
	AskFirst    Effects = Effects(policy.AskEffects)  // they wait for a yes; the zero value
	AutoApprove Effects = Effects(policy.AutoApprove) // they run at once; the audit marks each
	NoEffects   Effects = Effects(policy.NoEffects)   // they are denied, and the model gets the reason
)

// Policy says which addresses effects may reach: addresses (a@example.com), domains (example.com) and all domains below
// one (*.example.com). It goes by EffectConfig.Targets.
type Policy struct {
	NeverTo []string
	OnlyTo  []string // empty: everyone whom NeverTo does not name
}

// The defaults and bounds of Options.
const (
	defaultModelCalls  = 50
	defaultThreshold   = 0.5
	defaultToolTimeout = 2 * time.Minute
	defaultWait        = 7 * 24 * time.Hour
	maxToolTimeout     = 10 * time.Minute
	modelTimeout       = 5 * time.Minute // of one call of the model, retries included
)

// A lease outlives a process that dies by at most the sum: a later process goes on then.
const (
	leasePeriod = 6 * time.Second
	leaseMargin = 3 * time.Second
)

// local is the user of an agent that names none.
const local = "local"

// Agent is a model with instructions and tools. It is safe for concurrent use, and serves many users and sessions.
type Agent struct {
	core *core
	user string
}

// core is what the faces of one agent share ([Agent.As]).
type core struct {
	options Options
	name    string // in the store: sdk-, and Options.Name
	dir     string
	its     *registry.Agent
	tools   tool.Set
	loop    *loop.Loop
	model   *lazyModel
	log     *slog.Logger
	allowed shell.Allowed // Options.Commands
	stop    []func() error
	texts   texts

	skills    *skill.Library
	catalogue string // of the skills, for the end of the instructions

	mu      sync.Mutex
	closed  bool
	calls   map[string]execution // by action: the calls of tools that are executing
	moving  sync.WaitGroup       // the steps that move runs
	leave   context.Context      // ends when the agent is closed
	leaving context.CancelFunc
}

// New returns an agent. It needs no network: who is asked is first spoken to by the first run. Its error joins all that
// is wrong with the options, each an [*Error] of [ClassValidation] whose Field names the option.
func New(o Options) (*Agent, error) {
	c := &core{options: o, name: "sdk-" + o.Name, log: slog.New(slog.DiscardHandler)}
	if o.Name == "" {
		c.name += "agent"
	}
	var wrong []error
	for _, set := range []func() error{c.setLog, c.setSelf, c.setBudget, c.setDir, c.setCommands, c.setTools,
		c.setSkills, c.setModel, c.setLoop} {
		wrong = append(wrong, set())
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, joined(err)
	}
	c.leave, c.leaving = context.WithCancel(context.Background())
	return &Agent{core: c, user: local}, nil
}

// joined returns a tree of joined errors as a flat join of public ones.
func joined(err error) error {
	var all []error
	var walk func(error)
	walk = func(err error) {
		if j, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range j.Unwrap() {
				walk(e)
			}
			return
		}
		all = append(all, public(err))
	}
	walk(err)
	return errors.Join(all...)
}

// setSelf checks the name, the instructions and the limits, and makes the registry's entry.
func (c *core) setSelf() error {
	o := &c.options
	var wrong []error
	needs := func(ok bool, field, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fault.Invalid(field, format, args...))
		}
	}
	needs(registry.ValidName(c.name), "Name", "it has to be up to 28 small letters, digits and hyphens")
	needs(o.Instructions == "" || o.InstructionsFunc == nil, "Instructions",
		"InstructionsFunc is set as well, and one of them is too many")
	effects := policy.Effects(o.Effects)
	needs(effects == policy.AskEffects || effects == policy.AutoApprove || effects == policy.NoEffects, "Effects",
		"it has to be AskFirst, AutoApprove or NoEffects")
	number(&o.MaxModelCalls, defaultModelCalls)
	number(&o.ToolTimeout, defaultToolTimeout)
	number(&o.ApprovalTTL, defaultWait)
	number(&o.Deadline, defaultWait)
	span := func(field string, d, least, most time.Duration) {
		needs(d >= least && d <= most, field, "it is %s, and has to be %s to %s", d, least, most)
	}
	needs(o.CompressionThreshold == -1 || o.CompressionThreshold >= 0 && o.CompressionThreshold <= 1,
		"CompressionThreshold", "it is %g, and has to be 0 to 1, or -1", o.CompressionThreshold)
	number(&o.CompressionThreshold, defaultThreshold)
	const day = 24 * time.Hour
	needs(o.MaxModelCalls >= 1 && o.MaxModelCalls <= 50, "MaxModelCalls", "it is %d, and has to be 1 to 50",
		o.MaxModelCalls)
	span("ToolTimeout", o.ToolTimeout, time.Second, maxToolTimeout)
	span("ApprovalTTL", o.ApprovalTTL, time.Second, 30*day)
	span("Deadline", o.Deadline, time.Second, 90*day)
	c.its = &registry.Agent{Name: c.name, Instructions: registry.Text(o.Instructions),
		History:     registry.HistoryVerbatim,
		Compression: registry.Compression{Window: model.Window(o.Model), Threshold: max(o.CompressionThreshold, 0)},
		OnReject:    registry.RejectContinues, Exclusive: true, Order: registry.Sequential, Effects: effects,
		Model: model.Settings{Name: o.Model},
		Limits: registry.Limits{ModelCalls: o.MaxModelCalls, Deadline: o.Deadline, ApprovalTTL: o.ApprovalTTL,
			ModelTimeout: modelTimeout, ToolTimeout: o.ToolTimeout}}
	return errors.Join(wrong...)
}

// number sets a value that is zero to its default.
func number[T comparable](v *T, def T) {
	if reflect.ValueOf(v).Elem().IsZero() {
		*v = def
	}
}

// setDir makes the directory's path absolute.
func (c *core) setDir() (err error) {
	if c.dir, err = filepath.Abs(c.options.Dir); err != nil {
		return fault.Invalid("Dir", "it cannot be found from the working directory").Because(err)
	}
	if info, err := os.Stat(c.dir); err != nil || !info.IsDir() {
		return fault.Invalid("Dir", "it is no directory").Because(err)
	}
	return nil
}

// setTools makes the tools for this agent.
func (c *core) setTools() error {
	c.tools = tool.Set{}
	var wrong []error
	for i, t := range c.options.Tools {
		field := fmt.Sprintf("Tools[%d]", i)
		if t == nil {
			wrong = append(wrong, fault.Invalid(field, "it is nil"))
			continue
		}
		made, err := t.bind(c)
		switch {
		case err != nil:
			wrong = append(wrong, fault.Invalid(field, "the tool %q: %s", t.name, err).Because(err))
			continue
		case c.tools[made.Name] != nil:
			wrong = append(wrong, fault.Invalid(field, "two tools are called %q", made.Name))
		}
		c.tools[made.Name] = c.hooked(made)
		if t.stop != nil {
			c.stop = append(c.stop, t.stop)
		}
	}
	return errors.Join(wrong...)
}

// setModel finds out who is asked.
func (c *core) setModel() error {
	asked := bridge.Asked{}
	if p := c.options.Provider; p != nil {
		asked = bridge.Of(p)
	} else {
		var err error
		if asked, err = environment(); err != nil {
			return err
		}
	}
	c.model = &lazyModel{provider: asked, name: c.options.Model}
	if asked.Check != nil {
		return asked.Check()
	}
	return nil
}

// setLoop puts the loop together.
func (c *core) setLoop() error {
	rules, err := c.rules()
	st := c.options.Store
	if st == nil {
		st = memory.New(time.Now)
	}
	asked := hookedModel{loggedModel{c.model, c.log, c.options.Debug}, c}
	c.loop = loop.New(unit.Env{Store: st, Queue: silent{}, Model: asked,
		Tools: c.tools, Rules: rules, Agents: registry.Set{c.name: c.its}, LeasePeriod: leasePeriod,
		LeaseMargin: leaseMargin, Log: c.log, Recorder: observe.Recorder{Tracer: c.tracer()}})
	return err
}

// rules are the policy of the options.
func (c *core) rules() (policy.Rules, error) {
	var wrong []error
	list := func(field string, entries []string) address.Patterns {
		p, err := address.ParsePatterns(strings.Join(entries, ","))
		if err != nil {
			wrong = append(wrong, fault.Invalid(field, "%s", strings.TrimPrefix(err.Error(), "address: ")).Because(err))
		}
		return p
	}
	r := policy.Rules{Denied: list("Policy.NeverTo", c.options.Policy.NeverTo),
		Permitted: list("Policy.OnlyTo", c.options.Policy.OnlyTo), NoAllowlist: true}
	return r, errors.Join(wrong...)
}

// silent is the queue of a process in which callers move their own runs.
type silent struct{}

func (silent) Resume(context.Context, queue.Message) error { return nil }
func (silent) Close() error                                { return nil }

// As returns the agent for a user: their sessions, their approvals. The program answers for who they are.
func (a *Agent) As(user string) *Agent { return &Agent{core: a.core, user: user} }

// Close leaves the runs that are being moved, as a cancelled context does, and waits until they have been left. The
// agent refuses everything from then on, for all users. Store stays open.
func (a *Agent) Close() error {
	c := a.core
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.mu.Unlock()
	c.leaving()
	c.moving.Wait()
	if !first {
		return nil
	}
	var failed []error
	for _, stop := range c.stop {
		failed = append(failed, stop())
	}
	return errors.Join(failed...)
}

// usable returns nil, or the error of an agent that is closed, or of a user whose name cannot be one.
func (a *Agent) usable() error {
	a.core.mu.Lock()
	defer a.core.mu.Unlock()
	switch {
	case a.core.closed:
		return ErrClosed
	case strings.Contains(a.user, "/") || a.user == "" || store.ValidPath(document.UserPath(a.user)) != nil:
		return public(fault.Invalid("user", "the name of a user has 1 to 1500 bytes of UTF-8, without a slash"))
	}
	return nil
}

// enter registers a step that moves a run, which calls leave at its end. Close waits for it.
func (c *core) enter() (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	c.moving.Add(1)
	return c.moving.Done, nil
}
