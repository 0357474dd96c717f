package loop_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// TestAgentInstructionsInRequests checks that each request to the model contains the agent's whole text, its tools and
// its settings, and nothing of another agent's. A forced tool is forced once.
func TestAgentInstructionsInRequests(t *testing.T) {
	ctx, w, cold := context.Background(), newEnv(t), float32(0.25)
	clerk := testAgent("clerk", "")
	clerk.Instructions, clerk.Tools = registry.Text("You are a clerk, and that is all."), []string{"lookup", "draft"}
	clerk.History = registry.HistoryNone
	clerk.Model = model.Settings{Name: "gemini-small", Temperature: &cold, Forced: "lookup"}
	w.loop.Agents["clerk"] = clerk
	w.model.Then(script.Turn{Text: "Hello."},
		script.Turn{Calls: []script.Call{{Name: "lookup", Args: map[string]any{"word": "tea"}}}},
		script.Turn{Text: "It is about tea."})
	first := start(t, w, "hello")
	v, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana", Agent: "clerk", ThreadID: first.ThreadID},
		loop.Prompt{Text: "tea"})
	if err != nil {
		t.Fatal(err)
	}
	if first.Agent != "assistant" || v.Agent != "clerk" || v.Summary != "It is about tea." {
		t.Errorf("%s, and %s says %q", first.Agent, v.Agent, v.Summary)
	}
	asked := w.model.Requests()
	if s := asked[0]; !strings.HasPrefix(s.System, "You are a test.\n\nRules:") || len(s.Tools) != 3 ||
		!reflect.DeepEqual(s.Settings, model.Settings{}) {
		t.Errorf("the assistant's request: %+v", s)
	}
	for i, forced := range []string{"lookup", ""} {
		s, want := asked[i+1], clerk.Model
		want.Forced = forced
		if s.System != "You are a clerk, and that is all." || len(s.Tools) != 2 || s.Tools[0].Name != "draft" ||
			!reflect.DeepEqual(s.Settings, want) {
			t.Errorf("request %d of the clerk: %+v", i+1, s)
		}
		if len(s.Contents) != 1+2*i { // nothing of the assistant's run in the same thread
			t.Errorf("request %d of the clerk has %d contents: %s", i+1, len(s.Contents), s.Contents)
		}
	}
}

// TestFailedInstructions checks that a run ends without a request to the model if its instructions cannot be made.
func TestFailedInstructions(t *testing.T) {
	w := newEnv(t)
	w.assistant().Instructions = func(context.Context, registry.State) (string, error) {
		return "half", context.Canceled
	}
	v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "hello"})
	if err != nil || v.Status != "failed" || v.ErrorCode != fault.Model || len(w.model.Requests()) != 0 {
		t.Errorf("%v %+v, and the model got %v", err, v, w.model.Requests())
	}
}

// TestKeyBoundToAgent refuses a key that is used again for another agent.
func TestKeyBoundToAgent(t *testing.T) {
	ctx, w := context.Background(), newEnv(t)
	w.loop.Agents["clerk"] = testAgent("clerk", "You are a clerk.")
	w.model.Then(script.Turn{Text: "Hello."})
	start := func(name string) (string, error) {
		v, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana", Agent: name, Key: "k"}, loop.Prompt{Text: "hello"})
		if err != nil {
			return "", err
		}
		return v.RunID, nil
	}
	id, err := start("")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := start("assistant"); err != nil || again != id {
		t.Errorf("the assistant by its name: %v %v", again, err)
	}
	if _, err := start("clerk"); !fault.Is(err, fault.Policy, fault.CodeKeyReused) {
		t.Errorf("the clerk: %v", err)
	}
	if _, err := start("nobody"); !fault.Is(err, fault.Auth, fault.CodeNotFound) {
		t.Errorf("an agent that is not there: %v", err)
	}
}
