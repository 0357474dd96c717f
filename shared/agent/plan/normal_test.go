package plan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

func TestNormalizePlan(t *testing.T) {
	p := normal(t, bind(), plan.Plan{
		Tasks: []plan.Task{task(" One ", opens, func(t *plan.Task) {
			t.Tools = []string{"github.readFile", "docker.executeScript", "github.readFile"}
			t.Effects = append(t.Effects, t.Effects...)
		}), task("Two", func(t *plan.Task) { t.ID = "the second" })},
		Grants: []plan.Grant{{Tool: "github.createIssue", Version: "mine", MaxCalls: 1,
			Target: json.RawMessage(`{"labels":["b","a","b"],"repo":"web","owner":"acme"}`)}},
	})
	one := p.Tasks[0]
	if one.ID != "t1" || one.Title != "One" || p.Tasks[1].ID != "t2" ||
		!slices.Equal(one.Tools, []string{"docker.executeScript", "github.createIssue", "github.readFile"}) ||
		!slices.Equal(one.Effects, []string{"github.createIssue"}) {
		t.Errorf("%+v", p.Tasks)
	}
	g := p.Grants[0]
	if string(g.Target) != `{"labels":["a","b"],"owner":"acme","repo":"web"}` || g.ID != "g1" ||
		g.Version != tools["github.createIssue"].Version() || !g.Until.Equal(deadline) {
		t.Errorf("%+v", g)
	}
	if p.Repo != repo || !p.Deadline.Equal(deadline) {
		t.Errorf("%s, %s", p.Repo, p.Deadline)
	}
	b := canonical(t, p)
	again, err := plan.Decode(b)
	if err != nil || !bytes.Equal(b, canonical(t, normal(t, bind(), again))) {
		t.Errorf("%v, or Normalize changed a normal plan", err)
	}
}

func TestNormalizeRevisionIDs(t *testing.T) {
	first := normal(t, bind(), plan.Plan{Tasks: []plan.Task{task("One"), task("Two"), task("Three")},
		Grants: []plan.Grant{grant(1)}})
	b := bind()
	b.Before, b.NextID, b.Kept = &first, 4, first.Tasks[:1]
	second := normal(t, b, plan.Plan{Tasks: []plan.Task{task("New"), task("Three")}, Grants: []plan.Grant{grant(2)}})
	var ids []string
	for _, task := range second.Tasks {
		ids = append(ids, task.ID)
	}
	if !slices.Equal(ids, []string{"t1", "t4", "t3"}) || second.Grants[0].ID != "g1" {
		t.Errorf("%v, %s; want ids %v, second.Grants[0].ID “g1”", ids, second.Grants[0].ID, []string{"t1", "t4", "t3"})
	}
	if repeated := normal(t, b, plan.Plan{Tasks: []plan.Task{task("One"), task("Two")}}); len(repeated.Tasks) != 2 {
		t.Errorf("a completed task is open again: %+v", repeated.Tasks)
	}
	claimed := task("Not done at all")
	claimed.ID = "t1"
	_, err := b.Normalize(plan.Plan{Tasks: []plan.Task{claimed, task("Two")}})
	if err == nil || fault.As(err).Field != "tasks/0/id" {
		t.Errorf("a different task with the ID of a completed one: %v", err)
	}
}

// TestLimits checks that exceeding a limit is a ValidationError that names the field, and that the limit itself is
// accepted.
func TestLimits(t *testing.T) {
	edit := func(change func(*plan.Task)) func(*plan.Plan) {
		return func(p *plan.Plan) { change(&p.Tasks[1]) }
	}
	granted := func(change func(*plan.Grant)) func(*plan.Plan) {
		return func(p *plan.Plan) {
			p.Grants = []plan.Grant{grant(1)}
			change(&p.Grants[0])
		}
	}
	long := func(n int) string { return strings.Repeat("a", n) }
	many := func(n int, text string) []string { return slices.Repeat([]string{text}, n) }
	target := func(s string) func(*plan.Plan) {
		return granted(func(g *plan.Grant) { g.Target = json.RawMessage(s) })
	}
	for name, c := range map[string]struct {
		change func(*plan.Plan)
		field  string // empty: the plan is accepted
	}{
		"nothing to do":    {func(p *plan.Plan) { p.Tasks = nil }, "tasks"},
		"20 tasks":         {func(p *plan.Plan) { p.Tasks = slices.Repeat(p.Tasks[:1], 20) }, ""},
		"21 tasks":         {func(p *plan.Plan) { p.Tasks = slices.Repeat(p.Tasks[:1], 21) }, "tasks"},
		"120 characters":   {edit(func(t *plan.Task) { t.Title = strings.Repeat("ä", 120) }), ""},
		"121 characters":   {edit(func(t *plan.Task) { t.Title = strings.Repeat("ä", 121) }), "tasks/1/title"},
		"no title":         {edit(func(t *plan.Task) { t.Title = " \u200b" }), "tasks/1/title"},
		"title of lines":   {edit(func(t *plan.Task) { t.Title = "a\nb" }), "tasks/1/title"},
		"2 KiB of goal":    {edit(func(t *plan.Task) { t.Goal = strings.Repeat("g", 2048) }), ""},
		"more of goal":     {edit(func(t *plan.Task) { t.Goal = strings.Repeat("g", 2049) }), "tasks/1/goal"},
		"no goal":          {edit(func(t *plan.Task) { t.Goal = "\t" }), "tasks/1/goal"},
		"more of doneWhen": {edit(func(t *plan.Task) { t.DoneWhen = strings.Repeat("g", 2049) }), "tasks/1/doneWhen"},
		"unknown tool":     {edit(func(t *plan.Task) { t.Tools = append(t.Tools, "rm") }), "tasks/1/tools/1"},
		"effect of a read": {edit(func(t *plan.Task) { t.Effects = t.Tools }), "tasks/1/effects/0"},
		"an id twice": {func(p *plan.Plan) {
			p.Tasks[0].ID, p.Tasks[1].ID = "t7", "t7"
		}, "tasks/1/id"},
		"32 KiB": {func(p *plan.Plan) {
			p.Tasks = slices.Repeat([]plan.Task{task("x", func(t *plan.Task) {
				t.Goal = strings.Repeat("g", 2000)
			})}, 17)
		}, "tasks"},
		"5 questions":       {func(p *plan.Plan) { p.Questions = many(5, "why?") }, ""},
		"6 questions":       {func(p *plan.Plan) { p.Questions = many(6, "why?") }, "questions"},
		"an empty question": {func(p *plan.Plan) { p.Questions = []string{"why?", " "} }, "questions/1"},
		"a long assumption": {func(p *plan.Plan) { p.Assumptions = []string{long(501)} }, "assumptions/0"},
		"21 assumptions":    {func(p *plan.Plan) { p.Assumptions = many(21, "a") }, "assumptions"},
		"another repo":      {func(p *plan.Plan) { p.Repo = "https://github.com/evil/web" }, "repo"},
		"our repo":          {func(p *plan.Plan) { p.Repo = repo }, ""},
		"another deadline":  {func(p *plan.Plan) { p.Deadline = deadline.Add(time.Second) }, "deadline"},

		"10 calls":      {granted(func(g *plan.Grant) { g.MaxCalls = 10 }), ""},
		"11 calls":      {granted(func(g *plan.Grant) { g.MaxCalls = 11 }), "grants/0/maxCalls"},
		"no call":       {granted(func(g *plan.Grant) { g.MaxCalls = 0 }), "grants/0/maxCalls"},
		"a read":        {granted(func(g *plan.Grant) { g.Tool = "github.readFile" }), "grants/0/tool"},
		"unknown":       {granted(func(g *plan.Grant) { g.Tool = "github.deleteEverything" }), "grants/0/tool"},
		"without bound": {granted(func(g *plan.Grant) { g.Tool = "run_shell_command" }), "grants/0/tool"},
		"past":          {granted(func(g *plan.Grant) { g.Until = now }), "grants/0/until"},
		"too late":      {granted(func(g *plan.Grant) { g.Until = deadline.Add(time.Second) }), "grants/0/until"},
		"twice": {func(p *plan.Plan) {
			p.Grants = []plan.Grant{grant(1), grant(2)}
		}, "grants/1/target"},
		"a grant's id twice": {func(p *plan.Plan) {
			p.Grants = []plan.Grant{grant(1), {ID: "g2", Tool: "docker.executeScript",
				Target: json.RawMessage(`{"path":"/"}`), MaxCalls: 1}}
			p.Grants[0].ID = "g2"
		}, "grants/1/id"},
		"11 grants": {func(p *plan.Plan) {
			for i := range 11 {
				p.Grants = append(p.Grants, plan.Grant{Tool: "docker.executeScript", MaxCalls: 1,
					Target: json.RawMessage(fmt.Sprintf(`{"path":"/%d"}`, i))})
			}
		}, "grants"},
		"another repository": {target(`{"owner":"acme","repo":"infra"}`), "grants/0/target"},
		"another case":       {target(`{"owner":"Acme","repo":"web"}`), "grants/0/target"},
		"look-alikes":        {target("{\"owner\":\"\u0430cme\",\"repo\":\"web\"}"), "grants/0/target"},
		"hidden":             {target("{\"owner\":\"acme\",\"repo\":\"web\u200b\"}"), "grants/0/target"},
		"no repository":      {target(`{"labels":["a"]}`), "grants/0/target"},
		"free text":          {target(`{"owner":"acme","repo":"web","title":"x"}`), "grants/0/target"},
		"no argument":        {target(`{"owner":"acme","repo":"web","admin":true}`), "grants/0/target"},
		"another type":       {target(`{"owner":"acme","repo":"web","labels":"a"}`), "grants/0/target"},
		"a list":             {target(`["acme","web"]`), "grants/0/target"},
		"a name twice":       {target(`{"owner":"acme","repo":"infra","repo":"web"}`), "grants/0/target"},
		"a target of 2 KiB":  {target(`{"owner":"` + strings.Repeat("a", 2048) + `"}`), "grants/0/target"},
		"in another container": {func(p *plan.Plan) {
			p.Grants = []plan.Grant{{Tool: "docker.executeScript",
				Target: json.RawMessage(`{"path":"/work"}`), MaxCalls: 1}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan.Plan{Tasks: []plan.Task{task("One"), task("Two")}}
			c.change(&p)
			_, err := bind().Normalize(p)
			switch f := fault.As(err); {
			case c.field == "" && err != nil:
				t.Error(err)
			case c.field != "" && (err == nil || f.Class != fault.Validation || f.Field != c.field):
				t.Errorf("%v, want a ValidationError of %s", err, c.field)
			}
		})
	}
}

// TestNormalizeGrantsWithNetwork checks that container tools with a network cannot be granted, because they reach
// beyond the session.
func TestNormalizeGrantsWithNetwork(t *testing.T) {
	b := bind()
	b.Tools = tool.NewSet(slices.Collect(maps.Values(tools))...)
	b.Tools["docker.executeScript"] = tool.Define(tool.Def[pathIn, textOut]{Name: "docker.executeScript",
		Description: "Runs.", SideEffect: true,
		Preview: func(pathIn) tool.Preview { return tool.Preview{Title: "Script"} },
		Pinned:  func(in pathIn) any { return in }, Execute: execute[pathIn]})
	_, err := b.Normalize(plan.Plan{Tasks: []plan.Task{task("One")}, Grants: []plan.Grant{{
		Tool: "docker.executeScript", Target: json.RawMessage(`{"path":"/work"}`), MaxCalls: 1}}})
	if fault.As(err).Field != "grants/0/target" {
		t.Error(err)
	}
}

func TestDecodeRefused(t *testing.T) {
	for in, field := range map[string]string{`{"tasks":7}`: "tasks", `{"tasks":[{"uid":"x"}]}`: "tasks/0/uid",
		`[]`: "", `{"tasks":[],"tasks":[]}`: "tasks", `{"deadline":"tomorrow"}`: "deadline"} {
		_, err := plan.Decode(json.RawMessage(in))
		if f := fault.As(err); err == nil || f.Class != fault.Validation || f.Field != field {
			t.Errorf("%s: %v; want an error, f.Class %v, f.Field %v", in, err, fault.Validation, field)
		}
	}
}

// FuzzPlan checks that accepted plans are in their normal form: within the limits, bound, and unchanged by a second
// Normalize.
func FuzzPlan(f *testing.F) {
	f.Add([]byte(`{"tasks":[{"title":"One","goal":"Reach it","tools":["github.readFile"],` +
		`"effects":["github.createIssue"],"doneWhen":"x"}],"grants":[{"tool":"github.createIssue",` +
		`"target":{"owner":"acme","repo":"web","labels":["b","a"]},"maxCalls":2}],"questions":["?"]}`))
	f.Add([]byte(`{"repo":"https://github.com/acme/web","deadline":"2027-01-08T10:00:00Z",` +
		`"tasks":[{"id":"t2","title":"a","goal":"b"},{"id":"t1","title":"c","goal":"d"}]}`))
	f.Add([]byte(`{"tasks":[{"title":"a","goal":"b"}],"grants":[{"id":"g3","tool":"docker.executeScript",` +
		`"target":{"path":"/"},"maxCalls":1,"until":"2027-01-06T10:00:00.5+01:00"}]}`))
	f.Add([]byte(`{"tasks":[]}`))
	f.Add([]byte("{\"tasks\":[{\"title\":\"\u202ea\",\"goal\":\"\u200b\"}]}"))
	proposing := plan.Proposing(bind())
	f.Fuzz(func(t *testing.T, in []byte) {
		args, err := proposing.Normalize(in)
		if err != nil {
			if e := fault.As(err); e.Class != fault.Validation {
				t.Fatalf("%q: %v; want e.Class %v", in, err, fault.Validation)
			}
			return
		}
		p, err := plan.Decode(args)
		if err != nil || len(args) > plan.MaxPlan || p.Repo != repo || !p.Deadline.Equal(deadline) {
			t.Fatalf("Normalize(%q) = %s, %v", in, args, err)
		}
		again, err := proposing.Normalize(args)
		if err != nil || !bytes.Equal(again, args) || !bytes.Equal(args, canonical(t, p)) {
			t.Fatalf("Normalize(%q) = %s, and Normalize of that is %s, %v", in, args, again, err)
		}
		ids := map[string]bool{}
		for _, task := range p.Tasks {
			if ids[task.ID] || task.ID == "" {
				t.Fatalf("%q: missing or duplicate ID %q", in, task.ID)
			}
			ids[task.ID] = true
		}
		if _, err := proposing.Preview(args); err != nil {
			t.Fatal(err)
		}
		after, err := plan.Apply(plan.Plan{}, plan.Diff(plan.Plan{}, p).Tasks)
		if err != nil || !reflect.DeepEqual(after.Tasks, p.Tasks) {
			t.Fatalf("%q: %v; want after.Tasks %v", in, err, p.Tasks)
		}
	})
}
