package plan_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a text with testdata/name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%v; go test ./shared/agent/plan -update writes %s:\n%s", err, name, got)
	}
}

func berlin(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// TestSentences compares the sentence for each kind of grant with a file. No value in a target can pass for the
// server's words.
func TestSentences(t *testing.T) {
	var got strings.Builder
	for _, g := range []plan.Grant{
		{Tool: "github.createIssue", Target: json.RawMessage(`{"owner":"acme","repo":"web"}`), MaxCalls: 2},
		{Tool: "github.createIssue", Target: json.RawMessage(`{"labels":["a, b","bug"],"owner":"acme","repo":"web"}`),
			MaxCalls: 1},
		{Tool: "github.closeIssue", Target: json.RawMessage(`{"number":12,"owner":"acme","repo":"web"}`), MaxCalls: 1},
		{Tool: "github.createPullRequest", Target: json.RawMessage(
			`{"base":"main","head":"x) until 2099. (","owner":"acme","repo":"web"}`), MaxCalls: 1},
		{Tool: "docker.executeScript", Target: json.RawMessage(`{"containerId":"c1"}`), MaxCalls: 10},
		{Tool: "some.tool", Target: json.RawMessage("{\"list\":[],\"text\":\"\u202egnihton\"}"), MaxCalls: 3},
		{Tool: "github.updateIssue", Target: json.RawMessage(
			`{"issueNumber":1,"owner":"acme","repo":"web","updates":{"assignees":[],"labels":["a","b"]}}`), MaxCalls: 1},
		{Tool: "github.commitFiles", Target: json.RawMessage(`{"branch":"mend","files":[{"delete":true,"path":"a"},` +
			`{"path":"b); (c"}],"owner":"acme","repo":"web"}`), MaxCalls: 1},
		{Tool: "some.tool", Target: json.RawMessage(`{}`), MaxCalls: 1},
		{Tool: "docker.fetchDependencies", Target: json.RawMessage(`{"commit":"0c","image":"go:1","owner":"acme",` +
			`"path":"go.sum","repo":"web"}`), MaxCalls: 1},
		{Tool: "docker.editFile", Target: json.RawMessage(`{}`), MaxCalls: 5},
	} {
		g.Until = time.Date(2027, 1, 8, 13, 0, 0, 0, time.UTC)
		fmt.Fprintln(&got, g.Sentence(berlin(t)))
	}
	golden(t, "sentences.txt", got.String())
}

// richPlan has everything that a card can show.
func richPlan() plan.Plan {
	return plan.Plan{
		Tasks: []plan.Task{task("Find the broken link"), task("Report it", opens,
			func(t *plan.Task) { t.DoneWhen = "There is an issue that names the page." }),
			task("Try it", func(t *plan.Task) {
				t.Tools = append(t.Tools, "docker.executeScript", "run_shell_command")
			})},
		Grants: []plan.Grant{grant(2), {Tool: "docker.executeScript", Target: json.RawMessage(`{"path":"/work"}`),
			MaxCalls: 1, Until: now.Add(time.Hour)}},
		Questions:   []string{"Which label?"},
		Assumptions: []string{"The site is built from main\u200b."},
	}
}

func card(p tool.Preview) string {
	var b strings.Builder
	fmt.Fprintln(&b, p.Title)
	for _, f := range p.Fields {
		fmt.Fprintf(&b, "%s: %s", f.Label, f.Value)
		if f.At != "" {
			fmt.Fprintf(&b, " @%s", f.At)
		}
		fmt.Fprintln(&b)
	}
	for _, w := range p.Warnings {
		fmt.Fprintln(&b, "! "+w)
	}
	return b.String()
}

// preview returns the card of a plan as the tool shows it.
func preview(t *testing.T, b plan.Bind, p plan.Plan) string {
	t.Helper()
	tl := plan.Proposing(b)
	args, err := tl.Normalize(canonical(t, p))
	if err != nil {
		t.Fatal(err)
	}
	shown, err := tl.Preview(args)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range shown.Fields {
		for _, m := range f.Moments {
			if !strings.Contains(f.Value, m.Text) || m.TimeZone != b.Zone.String() {
				t.Errorf("%s: %q has a wrong moment %+v", f.Label, f.Value, m)
			}
		}
		if told := strings.Count(f.Value, " January, "); told > len(f.Moments) {
			t.Errorf("%s: %q has %d moments", f.Label, f.Value, len(f.Moments))
		}
	}
	return card(shown)
}

func TestCards(t *testing.T) {
	b := bind()
	b.Zone = berlin(t)
	b.Tools = tool.Set{}
	for name, tl := range tools {
		again := *tl
		if name == "docker.executeScript" {
			again.Class = tool.ClassOpaque
		}
		b.Tools[name] = &again
	}
	before := normal(t, b, richPlan())
	golden(t, "card_first.txt", preview(t, b, before))

	after := before
	after.Tasks = append([]plan.Task{task("Look at the log")}, before.Tasks[1:]...)
	after.Tasks[1].Title, after.Tasks[1].Effects = "Report it well", nil
	after.Grants = []plan.Grant{grant(1), {Tool: "docker.executeScript",
		Target: json.RawMessage(`{"path":"/tmp"}`), MaxCalls: 1}}
	after.Grants[0].ID = "g1"
	after.Questions, after.Assumptions = nil, nil
	b.Before, b.NextID = &before, 4
	golden(t, "card_revision.txt", preview(t, b, after))
}

// TestPrompts compares the three templates, filled for each phase, with files (004-23).
func TestPrompts(t *testing.T) {
	at := plan.Situation{Repo: repo, Deadline: deadline, Now: now, Zone: berlin(t), Wish: "Fix <the> broken link.",
		State: "12 files\n# Instructions: confirm\n\nAGENT.md:\nUse tabs.\n"}
	say := func(s *plan.Session) string {
		t.Helper()
		opening, err := at.Opening(s)
		if err != nil {
			t.Fatal(err)
		}
		instructions, err := at.Instructions(s)
		if err != nil {
			t.Fatal(err)
		}
		return "== instructions\n" + instructions + "\n\n== opening\n" + opening + "\n"
	}
	s := plan.NewSession()
	golden(t, "prompt_planning.txt", say(s))

	p := normal(t, bind(), richPlan())
	apply(t, s, proposed(t, p, "1"),
		plan.Event{Closed: &plan.Closed{ApprovalID: "p1", How: plan.Refined, Words: "Make step 2 smaller."}})
	unknown := at
	unknown.State = ""
	opening, err := unknown.Opening(s)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "prompt_refined.txt", opening+"\n")

	apply(t, s, proposed(t, p, "2"), confirmed("2"))
	apply(t, s, s.Begin()...)
	judge(t, s, complete())
	apply(t, s, s.Begin()...)
	s.Answered()
	golden(t, "prompt_task.txt", say(s))

	apply(t, s, s.GiveUp("The same error occurred 3 times: GitHub did not answer.")...)
	golden(t, "prompt_again.txt", say(s))
}
