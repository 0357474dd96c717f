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

// Part is a part of a program: a client that it links, tools, or routes. A part adds itself to a [Builder], in stages.
// All parts go through one stage before any part begins the next. Within a stage they keep the order of their list.
// A part leaves out the stages in which it does nothing.
type Part struct {
	Name  string      // unique in a program; infra/functions.json lists the part under this name
	Needs config.Part // what must be configured for the part; empty: nothing
	Uses  []string    // names of the parts that must come before this one in the list

	// Of makes a bundle: the list of its parts. A bundle has no other field.
	Of []Part

	// Check runs as the process starts, before the stages. It returns an error that stops the start, and logs what an
	// operator should look at.
	Check func(cfg config.Config, log *slog.Logger) error

	// Open opens the part's client. A client makes no request before it is used.
	Open func(ctx context.Context, b *Builder) error
	// Tools adds tools. The check of names at the start runs this stage without Open, so all clients may be nil here.
	Tools func(b *Builder) error
	// Agents returns the agents that the operator declares. It runs when all tools are known.
	Agents DeclaredAgents
	// Servers opens the operator's MCP servers that have names of their own.
	Servers func(b *Builder, file []mcpfile.Server) error
	// Serve adds to the API. b.API.Loop is the engine.
	Serve func(b *Builder) error
}

// DeclaredAgents returns the agents that the operator declares. They may name the tools, and those of the servers.
// Their default limits are the assistant's. An agent of web pages has the limits of page. Its instructions lack the
// rules about what the page shows.
type DeclaredAgents func(cfg config.Config, tools tool.Set, servers []mcpfile.Server,
	assistant, page registry.Agent) ([]registry.Agent, error)

// The parts that no other package brings. Every program has a store, so its part is not listed; Reading takes its place
// in a function that writes nothing. Users and Push name the callers of a function. Chat answers web pages.
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

// Replace puts each part in the place of the part with its name.
func Replace(parts ...Part) Option {
	return func(o *options) { o.replaced = append(o.replaced, parts...) }
}

// listed returns the store and the parts of all bundles, with the replaced ones in their places. The error names a part
// that is listed twice, and one that is missing.
func listed(parts, replaced []Part) ([]Part, error) {
	all := flat(parts)
	if place(all, Reading.Name) < 0 {
		all = append([]Part{writing}, all...)
	}
	for _, p := range flat(replaced) {
		i := place(all, p.Name)
		if i < 0 {
			return nil, fmt.Errorf("part %s: there is no part of this name to replace", p.Name)
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

// complete puts a stage that does nothing in the place of each stage that the part leaves out. Agents stays nil.
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

// flat returns the parts with the parts of each bundle in its place.
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

// place returns the index of the part with the name; -1: none. It is a loop because a generic function over parts makes
// the linker keep all methods of all that a Builder holds, 0.1 MB.
func place(parts []Part, name string) int {
	for i, p := range parts {
		if p.Name == name {
			return i
		}
	}
	return -1
}
