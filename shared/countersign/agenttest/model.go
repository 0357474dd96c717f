package agenttest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/countersign/internal/bridge"
	"github.com/countersign-run/countersign/shared/countersign/offline"
)

// Model is a countersign.Provider that needs neither key nor network, from [Script] or [Replay]. Several agents can
// use it, at once or in turn. They get its answers in the order of their requests.
type Model struct {
	provider

	t     testing.TB
	asked *offline.Model

	mu   sync.Mutex
	over bool // the test has ended
}

type provider = bridge.Asked // embedded, but not exported

// Request is one request to the model.
type Request = offline.Request

// Tool is a tool as the model knows it.
type Tool = offline.Tool

// Requests returns all requests so far, oldest first, including refused ones.
func (m *Model) Requests() []Request { return m.asked.Requests() }

// newModel returns the model of package offline for a test. It fails the test if the script has no answer. At the end
// of a test that has not failed, it calls end.
func newModel(t testing.TB, asked *offline.Model, end func()) *Model {
	m := &Model{t: t, asked: asked}
	open := bridge.Of(asked).Open
	m.provider = bridge.Asked{Open: func(ctx context.Context, name string) (model.Model, error) {
		opened, err := open(ctx, name)
		return reporting{model.Wrapped{Model: opened}, m}, err
	}}
	t.Cleanup(func() {
		m.mu.Lock()
		m.over = true
		m.mu.Unlock()
		if !t.Failed() && !t.Skipped() {
			end()
		}
	})
	return m
}

// reporting is a model that fails the test if the script has no answer.
type reporting struct {
	model.Wrapped
	m *Model
}

func (r reporting) Generate(ctx context.Context, req model.Request, delta func(string)) (*model.Reply, error) {
	reply, err := r.Model.Generate(ctx, req, delta)
	var wrong bridge.ScriptError
	if errors.As(err, &wrong) {
		r.m.fail("%s", wrong)
	}
	return reply, err
}

// fail fails the test, unless the test has ended.
func (m *Model) fail(format string, args ...any) {
	m.t.Helper()
	m.mu.Lock()
	over := m.over
	m.mu.Unlock()
	if !over {
		m.t.Errorf("agenttest: "+format, args...)
	}
}

// refused is the error of a request that the script or the recording cannot answer.
func refused() error {
	return fault.New(fault.Model, model.CodeRefused, "The test's model refused the request; see the test's log.")
}
