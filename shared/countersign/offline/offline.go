// Package offline runs a program without a key and without a network: its model is a [Script] of answers, which the
// program gives to countersign.Options.Provider. The rest is the agent as it runs with Gemini.
//
//	model := offline.Script(
//		offline.Call("get_weather", Place{"Lisbon"}),
//		offline.Say("21 degrees."))
//	agent, err := countersign.New(countersign.Options{Provider: model, Tools: []*countersign.Tool{weather}})
//
// Package agenttest has the same scripts for tests. There, a request that differs from the script fails the test.
package offline

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/countersign/internal/bridge"
)

// Model is a countersign.Provider that needs neither key nor network. Several agents can use it, at once or in turn.
// They get its answers in the order of their requests.
type Model struct {
	provider

	left func() int

	mu       sync.Mutex
	requests []Request
}

type provider = bridge.Asked // embedded, but not exported

// Request is one request to the model.
type Request struct {
	Model        string            // Options.Model; empty: the provider's own
	Instructions string            // with the list of skills
	Contents     []json.RawMessage // the conversation, oldest first: Gemini contents
	Tools        []Tool            // the declared tools

	// Mode is the function-calling mode: AUTO, ANY, VALIDATED or NONE. Allowed has the only tools that the model may
	// call; empty: all.
	Mode    string
	Allowed []string
}

// Tool is a tool as the model knows it.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema,omitempty"` // of the arguments
}

// Requests returns all requests so far, oldest first, including refused ones.
func (m *Model) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Left returns the number of the script's turns that were not requested yet.
func (m *Model) Left() int { return m.left() }

func init() { bridge.NewModel = func(open bridge.Opener) any { return newModel(open) } }

// newModel returns a model that gets its answers from the Answer that open returns for a model's name.
func newModel(open bridge.Opener) *Model {
	m := &Model{left: func() int { return 0 }}
	m.provider.Open = func(ctx context.Context, name string) (model.Model, error) {
		answer, err := open(ctx, name)
		return asked{m, name, answer}, err
	}
	return m
}

// asked is the model for one agent.
type asked struct {
	m      *Model
	name   string
	answer bridge.Answer
}

func (a asked) Name() string { return a.name }

func (a asked) Generate(ctx context.Context, req model.Request, delta func(string)) (*model.Reply, error) {
	if req.Settings.Name == "" {
		req.Settings.Name = a.name
	}
	a.m.mu.Lock()
	a.m.requests = append(a.m.requests, requestOf(req))
	n := len(a.m.requests)
	a.m.mu.Unlock()
	return a.answer(ctx, n, req, delta)
}

func requestOf(req model.Request) Request {
	r := Request{Model: req.Settings.Name, Instructions: req.System, Contents: slices.Clone(req.Contents),
		Tools: []Tool{}, Mode: string(req.Settings.Calling), Allowed: req.Settings.Allowed}
	for _, t := range req.Tools {
		r.Tools = append(r.Tools, Tool{t.Name, t.Description, t.Schema})
	}
	switch {
	case req.NoTools:
		r.Mode, r.Allowed = "NONE", nil
	case req.Settings.Forced != "":
		r.Mode, r.Allowed = string(model.CallingAny), []string{req.Settings.Forced}
	case r.Mode == "":
		r.Mode = string(model.CallingAuto)
	}
	return r
}
