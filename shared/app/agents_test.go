package app_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/registry"
)

// TestAgentConfiguration checks that the configuration applies to the built-in agents.
func TestAgentConfiguration(t *testing.T) {
	w := deploy(t, "PERSONA=You are Max.", "MAX_MODEL_CALLS=7", "CHAT_MAX_MODEL_CALLS=9", "RUN_DEADLINE=48h",
		"APPROVAL_TTL=2h", "REJECT_OUTCOME=failed", "MAX_OPEN_APPROVALS=4", "MAX_APPROVALS_PER_DAY=5",
		"PLAN_MAX_ASKS=6", "PLAN_MAX_MODEL_CALLS=70", "PLAN_MAX_DEADLINE=8h", "FUNCTION_TIMEOUT=60s")
	all := w.App.API.Loop.Agents
	if !slices.Equal(all.Names(), []string{"assistant", "page", "planner"}) {
		t.Fatalf("all.Names() is %v; want %v", all.Names(), []string{"assistant", "page", "planner"})
	}
	want := registry.Limits{ModelCalls: 7, Deadline: 48 * time.Hour, ApprovalTTL: 2 * time.Hour, MaxOpen: 4,
		MaxPerDay: 5}.Within(time.Minute)
	for name, calls := range map[string]int{"assistant": 7, "page": 9} {
		a, limits := all[name], want
		limits.ModelCalls, limits.Contents = calls, a.Limits.Contents
		if !reflect.DeepEqual(a.Limits, limits) || a.OnReject != registry.RejectFails || a.Page != (name == "page") {
			t.Errorf("%s: %+v", name, a)
		}
		text, err := a.Instructions(t.Context(), registry.State{})
		if err != nil || !strings.HasPrefix(text, "You are Max.\n\n") || !strings.Contains(text, "\n\nRules:\n- Use") {
			t.Errorf("%s is told %v %s", name, err, text)
		}
	}
	agent, door := all["planner"], w.App.API.Plans
	want.ModelCalls, want.MaxAsks, want.Deadline = 70, 6, 8*time.Hour
	want.MaxPerDay = 6 // the approvals of one session, more than MAX_APPROVALS_PER_DAY
	if !reflect.DeepEqual(agent.Limits, want) || !agent.Plans || door.MaxDeadline != want.Deadline ||
		all.LivesIn("resume", "planner") || !all.LivesIn("resume-plan", "planner") || door.Loop.Serves("planner") {
		t.Errorf("the planner is %+v", agent)
	}
	var listed struct {
		Agents []struct {
			Name  string
			Tools []string
		}
	}
	if err := json.Unmarshal(w.call("GET", "/api/agent/agents", "").Body, &listed); err != nil {
		t.Fatal(err)
	}
	if len(listed.Agents) != 3 || !slices.Contains(listed.Agents[0].Tools, "gmail_send") ||
		slices.Contains(listed.Agents[1].Tools, "gmail_send") || slices.Contains(listed.Agents[2].Tools, "gmail_send") {
		t.Errorf("%+v", listed)
	}
}

// TestPlannerInstructionsOnContainers compares the planner's instructions with and without a container engine.
func TestPlannerInstructionsOnContainers(t *testing.T) {
	for _, on := range []bool{false, true} {
		var settings []string
		if on {
			settings = []string{"DOCKER_HOST=unix:///none/docker.sock", "DOCKER_IMAGES=localhost/go:1"}
		}
		w := deploy(t, settings...)
		l := w.App.API.Loop
		told, err := l.Agents["planner"].Instructions(t.Context(), registry.State{CreatedAt: time.Now()})
		if has := l.Tools["docker.createContainer"] != nil; err != nil || has != on ||
			strings.Contains(told, "There are no containers here") == on {
			t.Errorf("with an engine: %v, it has the tools: %v, and is told %q, %v", on, has, told, err)
		}
	}
}
