package countersign_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/countersign/internal/bridge"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// scripted is a provider with scripted answers.
type scripted struct {
	bridge.Asked
	*script.Model
}

func newScript(turns ...script.Turn) scripted {
	m := script.New(turns...)
	open := func(context.Context, string) (model.Model, error) { return m, nil }
	return scripted{bridge.Asked{Open: open}, m}
}

// call is a turn with one call.
func call(name string, args map[string]any) script.Turn {
	return script.Turn{Calls: []script.Call{{Name: name, Args: args}}}
}

func say(text string) script.Turn { return script.Turn{Text: text} }

// modelOf is what a provider opens.
type modelOf = model.Model

// newServer serves a handler on loopback for the time of a test, and returns its address.
func newServer(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return s.URL
}

func newAgent(t *testing.T, o countersign.Options) *countersign.Agent {
	t.Helper()
	a, err := countersign.New(o)
	return cleanup.Close(t, a, err)
}
