package countersign_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/countersign"
)

// invocable are three skills: one for users alone, one for the model alone, and one for both.
var invocable = fstest.MapFS{
	"deploy/SKILL.md": {Data: []byte("---\nname: deploy\ndescription: Deploys.\ndisable-model-invocation: true\n" +
		"argument-hint: <place> [--dry-run]\nallowed-tools: get_weather\n---\nDeploy to $1: $ARGUMENTS.\n")},
	"deploy/places.md": {Data: []byte("Lisbon is sunny.")},
	"style/SKILL.md": {Data: []byte("---\nname: style\ndescription: Writes well.\nuser-invocable: false\n---\n" +
		"Be brief.\n")},
	"both/SKILL.md": {Data: []byte("---\nname: both\ndescription: For both.\n---\nCount.\n")},
}

func withInvocable(t *testing.T, m countersign.Provider, tools ...*countersign.Tool) *countersign.Agent {
	return newAgent(t, countersign.Options{Provider: m, Instructions: "Be kind.", Tools: tools,
		Effects: countersign.AutoApprove, Skills: []countersign.Skills{countersign.SkillFS(invocable)}})
}

// TestSkillInvokedByUser has a user invoke a skill that the model is not told of. Its text counts in that run alone,
// and is not the user's words.
func TestSkillInvokedByUser(t *testing.T) {
	m := newScript(call("get_weather", map[string]any{"city": "Lisbon"}),
		call("read_invoked_skill_file", map[string]any{"path": "places.md"}), say("Deployed."), say("So."))
	other := notify(func() (any, error) { return "sent", nil })
	s := withInvocable(t, m, getWeather, other).NewSession()
	var first countersign.Event
	for e, err := range s.SendStream(t.Context(), "/deploy Lisbon --dry-run") {
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = e
		}
	}
	if e, ok := first.(*countersign.SkillActivated); !ok || *e != (countersign.SkillActivated{Skill: "deploy"}) {
		t.Errorf("the first event is %+v", first)
	}
	if _, err := s.Send(t.Context(), "And now?"); err != nil {
		t.Fatal(err)
	}
	requests := m.Requests()
	if !strings.HasPrefix(requests[0].System, "Be kind.\n\nSkills: ") || !strings.HasSuffix(requests[0].System,
		"\n\nDeploy to Lisbon: Lisbon --dry-run.") || strings.Contains(requests[3].System, "deploy") {
		t.Errorf("the instructions are %q, and then %q", requests[0].System, requests[3].System)
	}
	if got := toolNames(requests[0]); got != "activate_skill get_weather read_invoked_skill_file read_skill_file" {
		t.Errorf("the model has %s", got)
	}
	if got := toolNames(requests[3]); got != "activate_skill get_weather mail read_skill_file" {
		t.Errorf("later the model has %s", got)
	}
	if told := asLines(requests[2].Contents); !strings.Contains(told, "Lisbon is sunny.") {
		t.Errorf("the file is not told: %s", told)
	}
	said, err := s.Messages(t.Context())
	if err != nil || said[0].Text != "/deploy Lisbon --dry-run" {
		t.Errorf("%v: the user said %q", err, said[0].Text)
	}
}

// TestSkillsOfUserAndModel has the model try for a skill that users alone invoke, and a user for one of the model.
func TestSkillsOfUserAndModel(t *testing.T) {
	m := newScript(call("activate_skill", map[string]any{"name": "deploy"}),
		call("read_skill_file", map[string]any{"skill": "deploy", "path": "places.md"}),
		call("read_invoked_skill_file", map[string]any{"path": "places.md"}), say("No."), say("So."), say("Well."))
	a := withInvocable(t, m, getWeather)
	for _, prompt := range []string{"Deploy", "/style please", "/etc/hosts is empty"} {
		if _, err := a.NewSession().Send(t.Context(), prompt); err != nil {
			t.Fatal(err)
		}
	}
	requests := m.Requests()
	told := asLines(requests[3].Contents)
	if strings.Contains(told, "Deploy to") || strings.Contains(told, "sunny") {
		t.Errorf("the model has read it: %s", told)
	}
	for _, r := range requests {
		if strings.Contains(r.System, "deploy") || strings.Contains(r.System, "Be brief.") ||
			!strings.Contains(r.System, "- style: Writes well.") {
			t.Errorf("the instructions are %q", r.System)
		}
	}
	got := a.UserSkills()
	deploy := countersign.UserSkill{Name: "deploy", Description: "Deploys.", ArgumentHint: "<place> [--dry-run]"}
	if len(got) != 2 || got[0] != (countersign.UserSkill{Name: "both", Description: "For both."}) || got[1] != deploy {
		t.Errorf("%+v", got)
	}
}

// toolNames returns the names of the tools that the model is offered.
func toolNames(r model.Request) string {
	var names []string
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ")
}
