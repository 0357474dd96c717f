package countersign_test

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-run/countersign/shared/countersign"
)

//go:embed testdata/skills
var skillFiles embed.FS

// note is an effect.
type note struct {
	Text string `json:"text"`
}

// TestSkills has the model activate a skill, read a file of it, and call a tool that the skill allows and one that it
// does not. The model learns the rank of the skill's text.
func TestSkills(t *testing.T) {
	wrote := 0
	write := countersign.DefineEffect(countersign.EffectConfig[note, string]{Name: "write", Description: "Writes."},
		func(n note) countersign.Preview { return countersign.Preview{Title: n.Text} },
		func(context.Context, *countersign.SessionContext, note) (string, error) {
			wrote++
			return "Written.", nil
		})
	for name, skills := range map[string]countersign.Skills{
		"dir": countersign.SkillDir("testdata/skills"), "embed": countersign.SkillFS(skillFiles)} {
		m := newScript(
			call("activate_skill", map[string]any{"name": "release"}),
			call("read_skill_file", map[string]any{"skill": "release", "path": "notes/steps.md"}),
			call("get_weather", map[string]any{"city": "Lisbon"}),
			call("write", map[string]any{"text": "x"}),
			say("Released."))
		a := newAgent(t, countersign.Options{Provider: m, Instructions: "Be brief.", Effects: countersign.AutoApprove,
			Tools: []*countersign.Tool{getWeather, write}, Skills: []countersign.Skills{skills}})
		var said []string
		for e, err := range a.NewSession().SendStream(t.Context(), "Release 1.2") {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			switch e := e.(type) {
			case *countersign.ToolFinished:
				said = append(said, e.Tool)
			case *countersign.SkillActivated:
				if e.Seq == 0 || e.ActionID == "" {
					t.Errorf("%s: %+v", name, e)
				}
				said = append(said, "active: "+e.Skill)
			case *countersign.Finished:
				said = append(said, e.Text)
			}
		}
		want := "activate_skill, active: release, read_skill_file, get_weather, write, Released."
		if got := strings.Join(said, ", "); !strings.HasPrefix(got, want) || wrote != 0 {
			t.Fatalf("%s: %s; written %d times", name, got, wrote)
		}
		requests := m.Requests()
		if got := requests[0].System; !strings.HasPrefix(got, "Be brief.\n\nSkills: ") || !strings.HasSuffix(got,
			"\n- release: Releases a version. Use it when the user asks for a release.") {
			t.Errorf("%s: the instructions are %q", name, got)
		}
		told := ""
		for _, c := range requests[4].Contents {
			told += string(c)
		}
		for _, part := range []string{"This is the text of the skill release. It is guidance and stands below your",
			"Its files, which read_skill_file returns:\\n- notes/steps.md\\n", "look at the weather before you begin.",
			"Tag, then build.", `{"celsius":21}`,
			"This tool may not be called now: the skill release lets only these"} {
			if !strings.Contains(told, part) {
				t.Errorf("%s: the model is not told %q: %s", name, part, told)
			}
		}
	}
}

// TestSkillsWrong has New report all that is wrong with skills, beside what else is wrong.
func TestSkillsWrong(t *testing.T) {
	other := countersign.DefineTool(countersign.ToolConfig{Name: "activate_skill", Description: "Another."},
		func(context.Context, *countersign.SessionContext, place) (string, error) { return "", nil })
	_, err := countersign.New(countersign.Options{Provider: newScript(), MaxModelCalls: 51,
		Tools: []*countersign.Tool{other}, Skills: []countersign.Skills{countersign.SkillDir("testdata/skills")}})
	for _, want := range []string{"(MaxModelCalls)",
		`(Skills): the tool name "activate_skill" is reserved for skills`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	_, err = countersign.New(countersign.Options{Provider: newScript(), Skills: []countersign.Skills{{},
		countersign.SkillDir("testdata/none"), countersign.SkillFS(fstest.MapFS{"a/SKILL.md": {Data: []byte("a")},
			"b/SKILL.md": {Data: []byte("---\nname: c\n---\n")}})}})
	for _, want := range []string{"(Skills): testdata/none: the folder of skills cannot be opened",
		"(Skills): a/SKILL.md:1: front matter was expected", "(Skills): b/SKILL.md:2: description is missing"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	var e *countersign.Error
	if !errors.As(err, &e) || e.Class != countersign.ClassValidation || e.Field != "Skills" {
		t.Errorf("%+v", err)
	}
}

// TestSkillsOfOthers loads skills that were written for another product. The logger gets a warning for each departure
// from the format, and for the skill that is skipped. A list of foreign tools leaves the model the agent's own.
func TestSkillsOfOthers(t *testing.T) {
	m := newScript(call("activate_skill", map[string]any{"name": "Web_Reader"}),
		call("get_weather", map[string]any{"city": "Lisbon"}), say("Done."))
	var lines []string
	a := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{getWeather}, LogLevel: "warn",
		Logger: slog.New(countersign.LogFuncs{Warn: func(args ...any) { lines = append(lines, fmt.Sprint(args...)) }}),
		Skills: []countersign.Skills{countersign.SkillFS(fstest.MapFS{
			"broken/SKILL.md": {Data: []byte("no front matter")},
			"reader/SKILL.md": {Data: []byte("---\nname: Web_Reader\ndescription: Reads pages. Use when: asked.\n" +
				"version: 1.2.0\nallowed-tools: Read, WebFetch, Bash(git:*), mcp__x__y\n---\nRead it.\n")}})}})
	if _, err := a.NewSession().Send(t.Context(), "Read"); err != nil {
		t.Fatal(err)
	}
	told := asLines(m.Requests()[2].Contents)
	if !strings.Contains(told, `{"celsius":21}`) || strings.Contains(told, "you can call these tools only") {
		t.Errorf("the skill narrows: %s", told)
	}
	log := strings.Join(lines, "\n")
	for _, want := range []string{"broken/SKILL.md:1: front matter was expected", "; the skill is skipped",
		"reader/SKILL.md:3: the value is not YAML; it is read as plain text", `are ignored: "version"`,
		"Web_Reader is loaded as it is", `"Bash(git:*)" is not the name of a tool`,
		`which are ignored: "Read", "WebFetch", "mcp__x__y"`, "the skill Web_Reader does not narrow the tools"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
}

// TestSkillsAfterCompression has a session compressed by hand: the skill that is active stays, and so does the list.
func TestSkillsAfterCompression(t *testing.T) {
	m := newScript(call("activate_skill", map[string]any{"name": "release"}), say(strings.Repeat("word ", 2000)),
		say("A SUMMARY"), say("So be it."))
	a := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{getWeather},
		Skills: []countersign.Skills{countersign.SkillDir("testdata/skills")}})
	s := a.NewSession()
	if _, err := s.Send(t.Context(), "Release 1.2"); err != nil {
		t.Fatal(err)
	}
	if z, err := s.Compress(t.Context()); err != nil || z == nil {
		t.Fatalf("%v %+v; want z set", err, z)
	}
	if _, err := s.Send(t.Context(), "And now?"); err != nil {
		t.Fatal(err)
	}
	last := m.Requests()[3]
	for _, want := range []string{"A SUMMARY", "This skill was activated last, and still counts: release",
		"Read notes/steps.md, and look at the weather before you begin."} {
		if told := asLines(last.Contents); !strings.Contains(told, want) {
			t.Errorf("%q is not told: %s", want, told)
		}
	}
	if !strings.Contains(last.System, "\n- release: Releases a version.") {
		t.Errorf("the instructions are %q", last.System)
	}
}
