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

// Model is a countersign.Provider without a key and a network: of [Script] or [Replay]. It may serve several agents,
// one after the other or at once; they take its answers in the order in which they ask.
type Model struct {
	provider

	t     testing.TB
	asked *offline.Model

	mu   sync.Mutex
	over bool // the test has ended
}

type provider = bridge.Asked // embedded under a name that is not exported

// Request is what the model was asked once.
type Request = offline.Request

// Tool is a tool as the model knows it.
type Tool = offline.Tool

// Requests returns what has been asked so far, oldest first, with requests that were refused.
func (m *Model) Requests() []Request { return m.asked.Requests() }

// newModel returns the model of package offline for a test, which fails where a script does not answer. end is called
// at the end of the test, unless the test has failed.
func newModel(t testing.TB, asked *offline.Model, end func()) *Model {
	m := &Model{t: t, asked: asked}
	open := bridge.Of(asked).Open
	m.provider = bridge.Asked{Open: func(ctx context.Context, name string) (model.Model, error) {
		opened, err := open(ctx, name)
		return reporting{opened, m}, err
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

// reporting is a model that fails the test where a script does not answer.
type reporting struct {
	model.Model
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

// refused is the error of a request that this package does not answer.
func refused() error {
	return fault.New(fault.Model, model.CodeRefused, "The test's model refused the request; see the test's log.")
}
