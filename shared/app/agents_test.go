package app_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agents"
)

// TestAgentsAreConfigured has the built-in agents be what the configuration says of them.
func TestAgentsAreConfigured(t *testing.T) {
	w := deploy(t, "PERSONA=You are Max.", "MAX_MODEL_CALLS=7", "CHAT_MAX_MODEL_CALLS=9", "RUN_DEADLINE=48h",
		"APPROVAL_TTL=2h", "REJECT_OUTCOME=failed", "MAX_OPEN_APPROVALS=4", "MAX_APPROVALS_PER_DAY=5",
		"PLAN_MAX_ASKS=6", "PLAN_MAX_MODEL_CALLS=70", "PLAN_MAX_DEADLINE=8h", "FUNCTION_TIMEOUT=60s")
	all := w.App.API.Loop.Agents
	if !slices.Equal(all.Names(), []string{"assistant", "page", "planner"}) {
		t.Fatalf("%v", all.Names())
	}
	want := agents.Limits{ModelCalls: 7, Deadline: 48 * time.Hour, ApprovalTTL: 2 * time.Hour, MaxOpen: 4,
		MaxPerDay: 5}.Within(time.Minute)
	for name, calls := range map[string]int{"assistant": 7, "page": 9} {
		a, limits := all[name], want
		limits.ModelCalls, limits.Contents = calls, a.Limits.Contents
		if !reflect.DeepEqual(a.Limits, limits) || a.OnReject != agents.RejectFails || a.Page != (name == "page") {
			t.Errorf("%s: %+v", name, a)
		}
		text, err := a.Instructions(t.Context(), agents.State{})
		if err != nil || !strings.HasPrefix(text, "You are Max.\n\n") || !strings.Contains(text, "\n\nRules:\n- Use") {
			t.Errorf("%s is told %v %s", name, err, text)
		}
	}
	its, door := all["planner"], w.App.API.Plans
	want.ModelCalls, want.MaxAsks, want.Deadline = 70, 6, 8*time.Hour
	if !reflect.DeepEqual(its.Limits, want) || !its.Plans || door.MaxDeadline != want.Deadline ||
		all.LivesIn("resume", "planner") || !all.LivesIn("resume-plan", "planner") || door.Loop.Serves("planner") {
		t.Errorf("the planner is %+v", its)
	}
	var listed struct {
		Agents []struct {
			Name  string
			Tools []string
		}
	}
	if err := json.Unmarshal([]byte(w.call("GET", "/api/agent/agents", "").Body), &listed); err != nil {
		t.Fatal(err)
	}
	if len(listed.Agents) != 3 || !slices.Contains(listed.Agents[0].Tools, "gmail_send") ||
		slices.Contains(listed.Agents[1].Tools, "gmail_send") || slices.Contains(listed.Agents[2].Tools, "gmail_send") {
		t.Errorf("%+v", listed)
	}
}
