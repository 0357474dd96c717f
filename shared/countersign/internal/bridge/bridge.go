// Package bridge is what the packages of the SDK share and its users cannot name: how a Provider is asked, and how a
// tool of package tool becomes one of package countersign.
package bridge

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// Provider is implemented by what embeds [Asked], and so by nothing outside of the SDK.
type Provider interface{ asked() Asked }

// Asked makes what embeds it a [Provider].
type Asked struct {
	// Check returns the mistakes in the provider, joined, without a network. Nil: there can be none.
	Check func() error
	// Open returns the model. It is called at the first request, and again by the next one after an error. The name is
	// Options.Model, or empty.
	Open func(ctx context.Context, name string) (model.Model, error)
}

func (a Asked) asked() Asked { return a }

// Of returns how the provider is asked.
func Of(p Provider) Asked { return p.asked() }

// Environment returns the provider that the environment configures; package countersign sets it.
var Environment func() (Asked, error)

// Answer answers one request, the n-th from 1.
type Answer func(ctx context.Context, n int, req model.Request, delta func(string)) (*model.Reply, error)

// Opener returns the answers of the model with the name.
type Opener func(ctx context.Context, name string) (Answer, error)

// NewModel returns the *offline.Model whose answers come from an opener; package offline sets it.
var NewModel func(Opener) any

// ScriptError is beside the error of a request that a script did not answer: why, with what the request ends in.
type ScriptError string

// Error returns the text.
func (e ScriptError) Error() string { return string(e) }

// Tool is what a *countersign.Tool is made of by [NewTool].
type Tool struct {
	Tool  *tool.Tool
	Wrong error        // what New is to report of it, joined
	Close func() error // called once when the agent is closed; nil: nothing to close
}

// NewTool returns the *countersign.Tool; package countersign sets it.
var NewTool func(Tool) any
