package countersign

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

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
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/blob"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/tools/skill"
)

// After a process dies, its lease lasts at most leasePeriod plus leaseMargin. Then another process can continue the
// run.
const (
	leasePeriod = 6 * time.Second
	leaseMargin = 3 * time.Second
)

// local is the user of an agent for which As was not called.
const local = "local"

// Agent is a model with instructions and tools. It is safe for concurrent use, and serves many users and sessions.
type Agent struct {
	core *core
	user string
}

// core holds what all values of one agent share ([Agent.As]).
type core struct {
	options    Options
	name       string // the agent's name in the store: sdk- and Options.Name
	dir        string
	definition *registry.Agent
	tools      tool.Set
	loop       *loop.Loop
	model      *lazyModel
	log        *slog.Logger
	allowed    shell.Allowed // Options.Commands
	stop       []func() error
	texts      texts
	store      store.Store // Options.Store, or one in memory
	records    records.Records

	skills    *skill.Library
	catalogue string // the list of skills, which follows the instructions

	mu      sync.Mutex
	closed  bool
	calls   map[string]execution // by action: the tool calls that are running
	moving  sync.WaitGroup       // the running steps
	leave   context.Context      // ends when the agent is closed
	leaving context.CancelFunc
}

// New returns an agent. It needs no network: the first run makes the first request. The error joins all mistakes in
// the options, each an [*Error] of [ClassValidation] whose Field names the option.
func New(o Options) (*Agent, error) {
	c := &core{options: o, name: "sdk-" + o.Name, log: slog.New(slog.DiscardHandler)}
	if o.Name == "" {
		c.name += "agent"
	}
	var wrong []error
	for _, set := range []func() error{c.setLog, c.setSelf, c.setBudget, c.setDir, c.setCommands, c.setStore,
		c.setTools, c.setMemory, c.setSkills, c.setModel, c.setLoop} {
		wrong = append(wrong, set())
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, joined(err)
	}
	c.leave, c.leaving = context.WithCancel(context.Background())
	return &Agent{core: c, user: local}, nil
}

// joined flattens a tree of joined errors and converts each one to a public error.
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

// setSelf checks the name, the instructions and the limits, and fills the agent's registry entry.
func (c *core) setSelf() error {
	o := &c.options
	var wrong []error
	needs := func(ok bool, field, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fault.Invalid(field, format, args...))
		}
	}
	needs(registry.ValidName(c.name), "Name", "must be up to 28 lower-case letters, digits and hyphens")
	needs(o.Instructions == "" || o.InstructionsFunc == nil, "Instructions",
		"InstructionsFunc is set as well, and one of them is too many")
	needs(len(o.FallbackModels) <= maxFallbacks && !slices.Contains(o.FallbackModels, ""), "FallbackModels",
		"must be at most %d names of models", maxFallbacks)
	needs(len(o.Models) <= maxModels && !slices.Contains(o.Models, ""), "Models",
		"must be at most %d names of models", maxModels)
	effects := policy.Effects(o.Effects)
	needs(effects == policy.AskEffects || effects == policy.AutoApprove || effects == policy.NoEffects, "Effects",
		"must be AskFirst, AutoApprove or NoEffects")
	number(&o.MaxModelCalls, defaultModelCalls)
	number(&o.ToolTimeout, defaultToolTimeout)
	number(&o.ApprovalTTL, defaultWait)
	number(&o.Deadline, defaultWait)
	span := func(field string, d, least, most time.Duration) {
		needs(d >= least && d <= most, field, "%s; must be %s to %s", d, least, most)
	}
	needs(o.CompressionThreshold == -1 || o.CompressionThreshold >= 0 && o.CompressionThreshold <= 1,
		"CompressionThreshold", "%g; must be 0 to 1, or -1", o.CompressionThreshold)
	number(&o.CompressionThreshold, defaultThreshold)
	const day = 24 * time.Hour
	needs(o.MaxModelCalls >= 1 && o.MaxModelCalls <= 50, "MaxModelCalls", "%d; must be 1 to 50",
		o.MaxModelCalls)
	span("ToolTimeout", o.ToolTimeout, time.Second, maxToolTimeout)
	span("ApprovalTTL", o.ApprovalTTL, time.Second, 30*day)
	span("Deadline", o.Deadline, time.Second, 90*day)
	c.definition = &registry.Agent{Name: c.name, Instructions: registry.Text(o.Instructions),
		History:     registry.HistoryVerbatim,
		Compression: registry.Compression{Window: model.Window(o.Model), Threshold: max(o.CompressionThreshold, 0)},
		OnReject:    registry.RejectContinues, Exclusive: true, Order: registry.Sequential, Effects: effects,
		Model: model.Settings{Thoughts: o.Thoughts, Name: o.Model},
		Limits: registry.Limits{ModelCalls: o.MaxModelCalls, Deadline: o.Deadline, ApprovalTTL: o.ApprovalTTL,
			ModelTimeout: modelTimeout, ToolTimeout: o.ToolTimeout}}
	return errors.Join(wrong...)
}

// number replaces zero with a default.
func number[T comparable](v *T, def T) {
	if reflect.ValueOf(v).Elem().IsZero() {
		*v = def
	}
}

// setDir makes the directory's path absolute.
func (c *core) setDir() (err error) {
	if c.dir, err = filepath.Abs(c.options.Dir); err != nil {
		return fault.Invalid("Dir", "cannot be resolved from the working directory").Because(err)
	}
	if info, err := os.Stat(c.dir); err != nil || !info.IsDir() {
		return fault.Invalid("Dir", "not a directory").Because(err)
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
			wrong = append(wrong, fault.Invalid(field, "must not be nil"))
			continue
		}
		made, err := t.bind(c)
		switch {
		case err != nil:
			wrong = append(wrong, fault.Invalid(field, "the tool %q: %s", t.name, err).Because(err))
			continue
		case c.tools[made.Name] != nil:
			wrong = append(wrong, fault.Invalid(field, "two tools have the name %q", made.Name))
		}
		c.tools[made.Name] = c.hooked(made)
		if t.stop != nil {
			c.stop = append(c.stop, t.stop)
		}
	}
	return errors.Join(wrong...)
}

// setModel selects the model.
func (c *core) setModel() error {
	asked := bridge.Asked{}
	if p := c.options.Provider; p != nil {
		asked = bridge.Of(p)
	} else {
		var err error
		if asked, err = environment(); err != nil {
			return err
		}
		if c.options.FallbackModels == nil {
			c.options.FallbackModels = asked.Fallbacks
		}
		if c.options.Models == nil {
			c.options.Models = asked.Models
		}
	}
	c.model = &lazyModel{provider: asked, name: c.options.Model}
	if asked.Check != nil {
		return asked.Check()
	}
	return nil
}

// setStore selects the stores.
func (c *core) setStore() error {
	if c.store = c.options.Store; c.store == nil {
		c.store = memory.New(time.Now)
		if c.options.Files == nil {
			c.options.Files = &blob.Memory{}
		}
	}
	c.records = records.Records{Store: c.store, Files: c.options.Files, Now: time.Now}
	return nil
}

// setLoop assembles the loop.
func (c *core) setLoop() error {
	rules, err := c.rules()
	logged := loggedModel{model.Wrapped{Model: c.model}, c.log, c.options.Debug}
	asked := hookedModel{model.Wrapped{Model: logged}, c}
	ring, wrong := decisions(c.options.DecisionKeys)
	c.loop = loop.New(unit.Env{Store: c.store, Files: c.options.Files, Queue: silent{}, Model: asked, Decisions: ring,
		Fallbacks: c.options.FallbackModels, Models: c.options.Models, Tools: c.tools, Rules: rules,
		Agents: registry.Set{c.name: c.definition}, LeasePeriod: leasePeriod,
		LeaseMargin: leaseMargin, Log: c.log, Recorder: observe.Recorder{Tracer: c.tracer()}})
	return errors.Join(err, wrong)
}

// rules returns the policy from the options.
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

// silent is the queue of an agent. It sends nothing, because callers advance their own runs.
type silent struct{}

func (silent) Resume(context.Context, queue.Message) error { return nil }
func (silent) Close() error                                { return nil }

// As returns the agent for a user, with that user's sessions and approvals. The program is responsible for the user's
// identity.
func (a *Agent) As(user string) *Agent { return &Agent{core: a.core, user: user} }

// Close detaches from all runs in progress, as a cancelled context does, and waits for that. Afterwards every call
// returns [ErrClosed], for all users. Options.Store stays open.
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

// usable returns an error if the agent is closed or the user's name is invalid.
func (a *Agent) usable() error {
	a.core.mu.Lock()
	defer a.core.mu.Unlock()
	switch {
	case a.core.closed:
		return ErrClosed
	case strings.Contains(a.user, "/") || a.user == "" || store.ValidPath(document.UserPath(a.user)) != nil:
		return public(fault.Invalid("user", "a user name must have 1 to 1500 bytes of UTF-8, without a slash"))
	}
	return nil
}

// enter registers a step that advances a run. The step calls leave at its end, and Close waits for it.
func (c *core) enter() (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	c.moving.Add(1)
	return c.moving.Done, nil
}
