package agenttest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/countersign/internal/bridge"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/model"
)

// Model is a countersign.Provider without a key and a network: of [Script] or [Replay]. It may serve several agents,
// one after the other or at once; they take its answers in the order in which they ask.
type Model struct {
	provider

	t testing.TB

	mu       sync.Mutex
	over     bool // the test has ended
	requests []Request
}

type provider = bridge.Asked // embedded under a name that is not exported

// answer answers one request, the n-th from 1.
type answer func(ctx context.Context, n int, req model.Request, delta func(string)) (*model.Reply, error)

// Request is what the model was asked once.
type Request struct {
	Model        string            // Options.Model; empty: the provider's own
	Instructions string            // with the list of skills
	Contents     []json.RawMessage // the conversation, oldest first: Gemini contents
	Tools        []Tool            // that are declared

	// Mode is the function-calling mode: AUTO, ANY, VALIDATED or NONE. Allowed names the only tools that the model may
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

// Requests returns what has been asked so far, oldest first, with requests that were refused.
func (m *Model) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// newModel returns a model whose answers come from what open returns for the name of a model. end is called at the end
// of the test, unless the test has failed.
func newModel(t testing.TB, open func(ctx context.Context, name string) (answer, error), end func(asked int)) *Model {
	m := &Model{t: t}
	m.provider = bridge.Asked{Open: func(ctx context.Context, name string) (model.Model, error) {
		answer, err := open(ctx, name)
		return asked{m, name, answer}, err
	}}
	t.Cleanup(func() {
		m.mu.Lock()
		m.over = true
		n := len(m.requests)
		m.mu.Unlock()
		if !t.Failed() && !t.Skipped() {
			end(n)
		}
	})
	return m
}

// fail fails the test, unless it has ended: a test that has ended cannot be told.
func (m *Model) fail(format string, args ...any) {
	m.t.Helper()
	m.mu.Lock()
	over := m.over
	m.mu.Unlock()
	if !over {
		m.t.Errorf("agenttest: "+format, args...)
	}
}

// asked is the model as one agent asks it.
type asked struct {
	m      *Model
	name   string
	answer answer
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

// refused is the error of a request that this package does not answer.
func refused() error {
	return fault.New(fault.Model, model.CodeRefused, "The test's model refused the request; see the test's log.")
}
