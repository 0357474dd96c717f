package loop_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
	"github.com/countersign-run/countersign/shared/testkit/script"
	"github.com/countersign-run/countersign/shared/tools/skill"
)

// TestCompressWithSkills replaces two activated skills with a summary. The text of the skill that was activated last
// is added to the summary as it was recorded, although it had been cut before as an old result of a tool. The other
// skill is named. The same applies after the next summary.
func TestCompressWithSkills(t *testing.T) {
	realpart.Unraced(t)
	body := strings.Repeat("A step of the skill. ", 1000)
	skillOf := func(name, body string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("---\nname: " + name + "\ndescription: It does.\n---\n" + body)}
	}
	files := fstest.MapFS{"first/SKILL.md": skillOf("first", "SHORT"), "last/SKILL.md": skillOf("last", body)}
	library, err := skill.Load(skill.FS(files))
	if err != nil {
		t.Fatal(err)
	}
	w := &talk{env: compressing(newEnv(t))}
	for _, tool := range library.Tools() {
		w.loop.Tools[tool.Name] = tool
	}
	w.loop.Tools["lookup"] = tool.Define(tool.Def[lookupArgs, string]{Name: "lookup", Description: "Looks a word up.",
		Execute: func(context.Context, tool.Call, lookupArgs) (string,
			error) {
			return strings.Repeat("ab", 30_000), nil
		}})
	agent := w.assistant()
	agent.Compression.Window, agent.Compression.Threshold, agent.Compression.Carry = 200_000, 0.4, skill.Carry
	agent.Limits.ModelCalls = 20
	activate := func(name string) script.Turn {
		return script.Turn{Calls: []script.Call{{Name: skill.Activate, Args: skill.ActivateArgs{Name: name}}}}
	}
	look := func(n int, last string) (turns []script.Turn) {
		for range n {
			turns = append(turns, callOf("lookup"))
		}
		return append(turns, script.Turn{Text: last})
	}
	kept := func(when string, told []json.RawMessage) {
		t.Helper()
		first := string(told[0])
		for _, want := range []string{"SUMMARY " + when, strings.TrimSpace(body),
			"These skills were activated before: first. ", "This skill was activated last, and still counts: last"} {
			if !strings.Contains(first, want) {
				t.Errorf("%s: %.60q is not told beside the summary: %.2000s", when, want, first)
			}
		}
		if strings.Contains(first, "SHORT") {
			t.Errorf("%s: the text of a skill before the last is told", when)
		}
	}
	w.ask("begin", activate("first"), activate("last"), script.Turn{Text: "I follow them."})
	v, _ := w.ask("look", look(6, "Seen.")...)
	if all := w.compressions(v); len(all) != 1 || all[0].Turns != 0 {
		t.Fatalf("at first results alone are cut: %+v", all)
	}
	agent.Compression.Threshold = 0.2
	v, told := w.ask("go on", script.Turn{Text: "SUMMARY one"}, script.Turn{Text: "I go on."})
	if all := w.compressions(v); len(all) != 1 || all[0].Turns == 0 {
		t.Fatalf("%+v", all)
	}
	kept("one", told)
	agent.Compression.Threshold = 0.9
	w.ask("look again", look(3, "Seen.")...)
	agent.Compression.Threshold = 0.2
	_, told = w.ask("go on", script.Turn{Text: "SUMMARY two"}, script.Turn{Text: "I go on."})
	kept("two", told)
}
