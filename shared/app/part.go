package app

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/tools/mcpfile"
)

// Part is a part of a program: a client, tools, or routes. A part adds itself to a [Builder] in stages. All parts
// complete one stage before any begins the next. Within a stage, they run in the order of their list. A stage that a
// part does not need is nil.
type Part struct {
	Name  string      // unique in a program; infra/functions.json lists the part under this name
	Needs config.Part // required configuration; empty for none
	Uses  []string    // names of the parts that must precede this one in the list

	// Of makes a bundle: a list of parts. A bundle has no other field.
	Of []Part

	// Check runs when the process starts, before the stages. An error stops the start. It also logs what an operator
	// should look at.
	Check func(cfg config.Config, log *slog.Logger) error

	// Open opens the part's client. The client sends no request before it is used.
	Open func(ctx context.Context, b *Builder) error
	// Tools adds tools. The check of names at the start runs this stage without Open, so all clients can be nil here.
	Tools func(b *Builder) error
	// Agents returns the agents that the operator declares. It runs once all tools are known.
	Agents DeclaredAgents
	// Servers opens the operator's MCP servers whose names are not taken.
	Servers func(b *Builder, file []mcpfile.Server) error
	// Serve adds to the API. b.API.Loop is the engine.
	Serve func(b *Builder) error
}

// DeclaredAgents returns the agents that the operator declares. They can name the given tools and the tools of the
// servers. Their default limits are the assistant's; an agent for web pages has the limits of page. The rules about the
// page's content are added to its instructions later.
type DeclaredAgents func(cfg config.Config, tools tool.Set, servers []mcpfile.Server,
	assistant, page registry.Agent) ([]registry.Agent, error)

// The parts that are not in a package of their own. Every program has a store, so its part is not listed; Reading
// replaces it in a function that writes nothing. Users and Push name a function's callers. Chat serves web pages.
var (
	Users   = Part{Name: "users", Needs: config.Users}
	Push    = Part{Name: "push", Needs: config.Push}
	Reading = Part{Name: "reading"}
	Chat    = Part{Name: "chat", Needs: config.Chat, Uses: []string{"model"}, Serve: serveChat}

	writing = Part{Name: "store"}
)

// With adds parts to the app that [New] opens. app/all has every part.
func With(parts ...Part) Option {
	return func(o *options) { o.parts = append(o.parts, parts...) }
}

// Replace replaces the parts that have the same names.
func Replace(parts ...Part) Option {
	return func(o *options) { o.replaced = append(o.replaced, parts...) }
}

// listed returns the store and the parts of all bundles, after replacements. It returns an error if a part is listed
// twice or is missing.
func listed(parts, replaced []Part) ([]Part, error) {
	all := flat(parts)
	if place(all, Reading.Name) < 0 {
		all = append([]Part{writing}, all...)
	}
	for _, p := range flat(replaced) {
		i := place(all, p.Name)
		if i < 0 {
			return nil, fmt.Errorf("part %s: no part of this name to replace", p.Name)
		}
		all[i] = p
	}
	for i, p := range all {
		if place(all[:i], p.Name) >= 0 {
			return nil, fmt.Errorf("part %s: listed twice", p.Name)
		}
		for _, used := range p.Uses {
			if place(all[:i], used) < 0 {
				return nil, fmt.Errorf("part %s: it uses the part %s, which must be listed before it", p.Name, used)
			}
		}
	}
	for i := range all {
		all[i].complete()
	}
	return all, nil
}

// complete sets each stage that is nil to one that does nothing, except Agents.
func (p *Part) complete() {
	nothing := func(*Builder) error { return nil }
	if p.Check == nil {
		p.Check = func(config.Config, *slog.Logger) error { return nil }
	}
	if p.Open == nil {
		p.Open = func(context.Context, *Builder) error { return nil }
	}
	if p.Tools == nil {
		p.Tools = nothing
	}
	if p.Servers == nil {
		p.Servers = func(*Builder, []mcpfile.Server) error { return nil }
	}
	if p.Serve == nil {
		p.Serve = nothing
	}
}

// flat returns the parts, with each bundle replaced by its parts.
func flat(parts []Part) (all []Part) {
	for _, p := range parts {
		if p.Of != nil {
			all = append(all, flat(p.Of)...)
			continue
		}
		all = append(all, p)
	}
	return all
}

// place returns the index of the part with the name, or -1. It is a loop because a generic function over parts would
// make the linker keep all methods of everything in a Builder, 0.1 MB.
func place(parts []Part, name string) int {
	for i, p := range parts {
		if p.Name == name {
			return i
		}
	}
	return -1
}
