// Package bridge has the shared internals of the SDK's packages: how a Provider opens its model, and how a tool of
// package tool becomes a tool of package countersign.
package bridge

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// Provider is implemented by types that embed [Asked], and so only inside the SDK.
type Provider interface{ asked() Asked }

// Asked makes a type that embeds it a [Provider].
type Asked struct {
	// Check returns the joined mistakes in the provider. It makes no request. Nil: nothing to check.
	Check func() error
	// Open returns the model. It is called for the first request, and again for the next request after an error. The
	// name is Options.Model, or empty.
	Open func(ctx context.Context, name string) (model.Model, error)
	// Fallbacks are the fallback models that the environment names, if it names the provider.
	Fallbacks []string
	// Models are the models that the environment offers for single prompts, if it names the provider.
	Models []string
}

func (a Asked) asked() Asked { return a }

// Of returns the provider's functions.
func Of(p Provider) Asked { return p.asked() }

// Environment returns the provider that the environment configures; package countersign sets it.
var Environment func() (Asked, error)

// Answer answers request n, counted from 1.
type Answer func(ctx context.Context, n int, req model.Request, delta func(string)) (*model.Reply, error)

// Opener returns the Answer for the model of the name.
type Opener func(ctx context.Context, name string) (Answer, error)

// NewModel returns an *offline.Model that gets its answers from an opener. Package offline sets it.
var NewModel func(Opener) any

// ScriptError accompanies the error of a request that a script did not answer. It has the reason and the error in
// which the request ends.
type ScriptError string

// Error returns the text.
func (e ScriptError) Error() string { return string(e) }

// Tool holds the parts from which [NewTool] makes a *countersign.Tool.
type Tool struct {
	Tool  *tool.Tool
	Wrong error        // the mistakes that countersign.New reports, joined
	Close func() error // called once when the agent is closed; nil: nothing to close
}

// NewTool returns the *countersign.Tool; package countersign sets it.
var NewTool func(Tool) any

// Replace returns a copy of a *countersign.Tool that is another tool in each agent: the one that the function returns
// for the original. Package countersign sets it.
var Replace func(t any, with func(*tool.Tool) *tool.Tool) any
