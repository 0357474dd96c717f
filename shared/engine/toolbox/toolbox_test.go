package toolbox_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/toolbox"
)

// remote returns a tool without behaviour.
func remote(t *testing.T, name string) *tool.Tool {
	t.Helper()
	r, err := tool.Remote(name, "A tool.", json.RawMessage(`{"type":"object","properties":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// source returns the tools of a process whose agent "reader" has the tool "look" of the tools "look" and "send".
func source(t *testing.T) toolbox.Source {
	return toolbox.Source{Tools: tool.NewSet(remote(t, "look"), remote(t, "send")),
		Agents: registry.Set{"reader": &registry.Agent{Name: "reader", Tools: []string{"look"}}}}
}

// TestCallable checks which tools a run may call: those of its agent and its page, and for a user's own call any tool.
func TestCallable(t *testing.T) {
	b := toolbox.New(source(t), time.Now)
	s := &run.State{Input: run.Input{PageTools: []run.PageTool{{Name: "paint", Description: "Paints.",
		Schema: json.RawMessage(`{"type":"object","properties":{}}`)}}}}
	for _, c := range []struct {
		agent, name   string
		userInitiated bool
		want          bool
	}{
		{"reader", "look", false, true},
		{"reader", "send", false, false},
		{"reader", "send", true, true},
		{"reader", "paint", false, true},
		{"unknown", "send", false, true},
		{"reader", "missing", true, false},
		{"reader", toolbox.TakeBackTool, false, false},
	} {
		if got := b.Callable(run.Run{Agent: c.agent}, s, c.name, c.userInitiated) != nil; got != c.want {
			t.Errorf("agent %s, tool %s, by the user %t: callable %t, want %t", c.agent, c.name, c.userInitiated, got,
				c.want)
		}
	}
	if page := b.Page(s.Input)["paint"]; !page.Untrusted || page.Source == "" {
		t.Errorf("the page's tool is trusted: %+v", page)
	}
}

// TestOffered checks that the model sees its agent's tools, and after them those of its page.
func TestOffered(t *testing.T) {
	b := toolbox.New(source(t), time.Now)
	s := &run.State{Input: run.Input{PageTools: []run.PageTool{{Name: "paint", Description: "Paints.",
		Schema: json.RawMessage(`{"type":"object","properties":{}}`)}}}}
	var names []string
	for _, spec := range b.Offered(run.Run{Agent: "reader"}, s) {
		names = append(names, spec.Name)
	}
	if want := []string{"look", "paint"}; !slices.Equal(names, want) {
		t.Errorf("offered %v, want %v", names, want)
	}
}

// served provides the tools of a server whose definitions change.
type served struct{ tools, next tool.Set }

func (s *served) Tools() tool.Set            { return s.tools }
func (s *served) Report() []tool.ServerTools { return nil }
func (s *served) Await(context.Context)      {}
func (s *served) Renew(context.Context, string) error {
	s.tools = s.next
	return nil
}

// TestRenew checks that the definition of a server's tool is refreshed before an effect, and not before a call that
// only reads.
func TestRenew(t *testing.T) {
	from := source(t)
	old, now := remote(t, "crm_add"), remote(t, "crm_add")
	from.Served = &served{tools: tool.NewSet(old), next: tool.NewSet(now)}
	b := toolbox.New(from, time.Now)
	if err := b.Renew(t.Context(), &run.Action{ProposedCall: run.ProposedCall{Tool: "crm_add"}}); err != nil {
		t.Fatal(err)
	}
	if b.Tools["crm_add"] != old {
		t.Error("a call that only reads has refreshed the tool")
	}
	old.SideEffect = true
	if err := b.Renew(t.Context(), &run.Action{ProposedCall: run.ProposedCall{Tool: "crm_add"}}); err != nil {
		t.Fatal(err)
	}
	if b.Tools["crm_add"] != now {
		t.Error("an effect has not refreshed the tool")
	}
}
