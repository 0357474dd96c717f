package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/netguard"
)

// A Registry holds the actions that can be called. A nil Registry has no actions.
type Registry struct {
	actions []Action
	tools   map[string]*tool.Tool // by the actions' own names
	names   map[string]string     // own names by the names for the model
	unbound []string
	notes   []string
}

// Options configure [Open] and [New].
type Options struct {
	Handlers Handlers
	Keys     [][]byte         // the first one signs the caller's identity; required if an action has a binding
	Issuer   string           // the issuer in identities
	Now      func() time.Time // the clock for identities; nil is time.Now
	// a name that resolves to a loopback address is refused; a literal loopback address is not
	Deployed bool
}

// MinKey is the minimum length of a key in bytes.
const MinKey = 32

// Open loads the folder and returns its actions with their handlers and bindings.
func Open(dir string, o Options) (*Registry, error) {
	l, err := load(dir)
	if err != nil {
		return nil, err
	}
	r, err := New(l.actions, o)
	if err != nil {
		return nil, err
	}
	r.notes = l.notes
	return r, nil
}

// Notes returns the keys of the files that this package ignores, such as those of jay-stack: a line for each file.
func (r *Registry) Notes() []string { return r.notes }

// New returns a Registry of actions with their handlers and bindings.
func New(actions []Action, o Options) (*Registry, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &maker{Options: o, client: netguard.Client(o.Deployed)}
	r := &Registry{actions: actions, tools: map[string]*tool.Tool{}, names: map[string]string{}}
	for _, a := range actions {
		t, err := m.tool(a)
		if err != nil {
			return nil, &Problem{File: a.File, Line: a.Line, Text: fmt.Sprintf("the action %s: %v", a.Name, err)}
		}
		r.tools[a.Name], r.names[t.Name] = t, a.Name
		if _, handled := o.Handlers[a.Name]; !handled && (a.Metadata == nil || a.Metadata.Binding == nil) {
			r.unbound = append(r.unbound, a.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Handlers)) {
		if r.tools[name] == nil {
			return nil, fmt.Errorf("there is a Go handler for the action %s, which no %s lists", name, pluginFile)
		}
	}
	return r, nil
}

// maker makes tools of actions.
type maker struct {
	Options
	client *http.Client
}

func (m *maker) tool(a Action) (*tool.Tool, error) {
	h, handled := m.Handlers[a.Name]
	isBound := a.Metadata != nil && a.Metadata.Binding != nil
	switch {
	case handled && isBound:
		return nil, errors.New("it has both a binding and a Go handler; remove one of them")
	case !handled && !isBound:
		return unbound(a)
	}
	d := tool.Declaration{Name: GeminiName(a.Name), Named: a.Named, Preview: a.preview, Summary: "Did " + a.Name + "."}
	switch {
	case a.Metadata == nil:
		d.Description, d.UserOnly, d.SideEffect, d.Input, d.Execute = "An action that only users call.", true,
			h.sideEffect, h.in, h.run
		return tool.Declare(d)
	case handled:
		if err := h.fits(a.Metadata); err != nil {
			return nil, fmt.Errorf("its Go handler does not fit %s: %w", a.Metadata.File, err)
		}
		d.Execute = h.run
	default:
		b, err := m.bind(a)
		if err != nil {
			return nil, err
		}
		d.Execute, d.Reconcile = b.execute, b.reconcile
	}
	a.Metadata.declare(&d)
	return tool.Declare(d)
}

// unbound returns the tool for an action with neither handler nor binding. It accepts any input and returns an error
// with the reason.
func unbound(a Action) (*tool.Tool, error) {
	return tool.Declare(tool.Declaration{Name: GeminiName(a.Name),
		Description: "An action that cannot run here.",
		UserOnly:    true,
		Input:       &jsonschema.Schema{Type: "object"},
		Execute: func(context.Context, tool.Call) (json.RawMessage, error) {
			return nil, fault.New(fault.Tool, fault.CodeNotBound,
				"This action is declared, but cannot run here: it has no Go handler, and no file "+
					"with a binding.")
		}})
}

// Unbound returns the names of the actions with neither handler nor binding, in the files' order.
func (r *Registry) Unbound() []string {
	if r == nil {
		return nil
	}
	return r.unbound
}

func (m *maker) bind(a Action) (*remote, error) {
	if len(m.Keys) == 0 || len(m.Keys[0]) < MinKey {
		return nil, fmt.Errorf("its binding needs a key to sign the user's ID; ACTION_KEY of at least %d "+
			"bytes was expected", MinKey)
	}
	key := m.Keys[0]
	if a.Metadata.Binding.DerivedKey {
		text, err := DeriveKey(key, a)
		if err != nil {
			return nil, err
		}
		key = []byte(text)
	}
	s, err := newSigner(key, m.Issuer, m.Now)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(a.Metadata.Binding.URL)
	if err != nil {
		return nil, err
	}
	return &remote{Binding: *a.Metadata.Binding, action: a.Name, effect: a.Metadata.SideEffect, url: u, sign: s,
		client: m.client}, nil
}

// Names returns the names of all actions, in the files' order.
func (r *Registry) Names() []string {
	var names []string
	for _, a := range r.all() {
		names = append(names, a.Name)
	}
	return names
}

// WithMetadata returns the actions that the model can call.
func (r *Registry) WithMetadata() []Action {
	return slices.DeleteFunc(slices.Clone(r.all()), func(a Action) bool { return r.tools[a.Name].UserOnly })
}

func (r *Registry) all() []Action {
	if r == nil {
		return nil
	}
	return r.actions
}

// Tool returns the action as a tool, or nil if the action does not exist. An action without metadata is hidden from the
// model.
func (r *Registry) Tool(name string) *tool.Tool {
	if r == nil {
		return nil
	}
	return r.tools[name]
}

// Tools returns all actions as tools.
func (r *Registry) Tools() tool.Set {
	set := tool.Set{}
	for _, a := range r.all() {
		t := r.tools[a.Name]
		set[t.Name] = t
	}
	return set
}

// Resolve returns the action's own name for its name for the model.
func (r *Registry) Resolve(geminiName string) (name string, ok bool) {
	if r == nil {
		return "", false
	}
	name, ok = r.names[geminiName]
	return name, ok
}

// Execute runs an action without a side effect, for c's user, with c.Args as its input. For an action with a side
// effect it returns a PolicyError: such an action must go through the loop (loop.StartCall), which records it and
// runs it exactly once.
func (r *Registry) Execute(ctx context.Context, name string, c tool.Call) (json.RawMessage, error) {
	t := r.Tool(name)
	if t == nil {
		return nil, fault.NotFound()
	}
	if t.SideEffect {
		return nil, fault.New(fault.Policy, fault.CodeNotApplicable,
			"This action changes something, so it runs only as a recorded action.")
	}
	args, err := t.Normalize(c.Args)
	if err != nil {
		return nil, err
	}
	c.Args = args
	return t.Execute(ctx, c)
}
