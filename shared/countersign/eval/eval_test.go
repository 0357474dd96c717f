package eval_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/countersign/agenttest"
	"github.com/countersign-run/countersign/shared/countersign/eval"
	"github.com/countersign-run/countersign/shared/countersign/offline"
)

type place struct {
	City string `json:"city"`
	Days int    `json:"days,omitempty"`
}

type mail struct {
	To   string `json:"to"`
	Text string `json:"text,omitempty"`
}

// really counts calls that reach a tool.
type really struct{ read, sent int }

func (r *really) tools() []*countersign.Tool {
	return []*countersign.Tool{
		countersign.DefineTool(countersign.ToolConfig{Name: "get_weather", Description: "The weather of a city."},
			func(context.Context, *countersign.SessionContext, place) (map[string]any, error) {
				r.read++
				return map[string]any{"celsius": 21}, nil
			}),
		countersign.DefineEffect(countersign.EffectConfig[mail, string]{Name: "send", Description: "Sends a mail."},
			func(m mail) countersign.Preview { return countersign.Preview{Title: "Mail to " + m.To} },
			func(context.Context, *countersign.SessionContext, mail) (string, error) {
				r.sent++
				return "sent", nil
			}),
	}
}

// folder writes files into a folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// load reads cases without a mistake.
func load(t *testing.T, files map[string]string) *eval.Set {
	t.Helper()
	set, err := eval.Load(folder(t, files))
	if err != nil || len(set.Problems) > 0 {
		t.Fatal(err, set)
	}
	return set
}

// held has the conversations of cases with a scripted model, one after the other.
func held(t *testing.T, set *eval.Set, o eval.Options, turns ...agenttest.Turn) (*eval.Report, *really,
	*agenttest.Model) {
	t.Helper()
	r, m := &really{}, agenttest.Script(t, turns...)
	a, err := eval.Of(countersign.Options{Provider: m, Tools: r.tools()})
	if err != nil {
		t.Fatal(err)
	}
	o.Parallel = 1
	report, err := eval.Run(t.Context(), a.Agent(), set, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	return report, r, m
}

var (
	porto  = agenttest.Call("get_weather", place{City: "Porto"})
	lisbon = agenttest.Call("get_weather", place{City: "Lisbon", Days: 2})
	send   = agenttest.Call("send", mail{To: "ana@example.com", Text: "Hi."})
	done   = agenttest.Say("Done.")
)

// TestCalls compares calls in every way: get_weather of Porto and of Lisbon, in this order, one after the other.
func TestCalls(t *testing.T) {
	for expect, want := range map[string]float64{
		`[{tool: get_weather, args: {city: Porto}}, {tool: get_weather, args: {city: Lisbon, days: 2}}]`:            1,
		`[{tool: get_weather, args: {city: Porto}}, {tool: get_weather, args: {city: Lisbon, days: 2.0}}]`:          1,
		`[{tool: get_weather, args: {city: Porto}}, {tool: get_weather, args: {city: Lisbon}}]`:                     0,
		`[{tool: get_weather, args: {city: Porto}}, {tool: get_weather, args: {city: Lisbon}, arguments: partial}]`: 1,
		`[get_weather, get_weather]`:              1,
		`[get_weather]`:                           0,
		`[get_weather, get_weather, get_weather]`: 0,
		`[]`: 0,
		`{match: in_order, expect: [{tool: get_weather, args: {city: Lisbon, days: 2}}]}`:                                  1,
		`{match: in_order, arguments: ignore, expect: [get_weather, send]}`:                                                0,
		`{match: in_order, arguments: partial, expect: [{tool: get_weather, args: {city: Lisbon}}, get_weather]}`:          0,
		`{match: any_order, arguments: partial, expect: [{tool: get_weather, args: {city: Lisbon}}]}`:                      1,
		`{match: any_order, expect: [get_weather, {tool: get_weather, args: {city: Porto}}]}`:                              1,
		`{match: any_order, expect: [{tool: get_weather, args: {city: Porto}}, {tool: get_weather, args: {city: Porto}}]}`: 0,
		`{match: set, arguments: partial, expect: [{tool: get_weather, args: {city: Lisbon}}, get_weather]}`:               1,
		`{match: set, arguments: partial, expect: [{tool: get_weather, args: {city: Lisbon}}]}`:                            0,
		`{match: subset, expect: [get_weather, get_weather, send]}`:                                                        1,
		`{match: subset, expect: [get_weather, send]}`:                                                                     0,
	} {
		set := load(t, map[string]string{"a.eval.yaml": "cases:\n  - prompt: Compare.\n    calls: " + expect + "\n"})
		report, _, _ := held(t, set, eval.Options{}, porto, lisbon, done)
		if got := report.Cases[0].Runs[0].Measures[eval.Calls]; got.Score != want || report.Passed() != (want == 1) {
			t.Errorf("%s: %+v", expect, got)
		}
	}
}

// TestEvalWithoutEffects answers calls with the case's results, and calls no tool with an effect, whatever is allowed.
func TestEvalWithoutEffects(t *testing.T) {
	set := load(t, map[string]string{"a.eval.yaml": `
never: [final_answer]
tools:
  get_weather:
    - {args: {city: Porto}, result: {celsius: 18}}
    - {error: no station}
cases:
  - {name: approved, turns: [{prompt: Look.}, {prompt: Send it., calls: [send]}]}
  - {name: rejected, prompt: Send it., approvals: {send: reject}}
`})
	report, r, m := held(t, set, eval.Options{}, porto, lisbon, porto, done, send, done, send, done)
	if !report.Passed() || *r != (really{}) {
		t.Errorf("%+v, %+v", report, r)
	}
	asked := m.Requests()
	for i, want := range map[int]string{1: `"celsius":18`, 2: "no station", 3: `"celsius":18`,
		5: "not run in an evaluation", 7: "not now"} {
		if last := asked[i].Contents[len(asked[i].Contents)-1]; !strings.Contains(string(last), want) {
			t.Errorf("request %d ends in %s, want %s", i, last, want)
		}
	}
}

// TestReads really calls the tools that are named, if they only read.
func TestReads(t *testing.T) {
	set := load(t, map[string]string{"a.eval.yaml": "cases: [{prompt: Look and send.}]"})
	report, r, m := held(t, set, eval.Options{Reads: []string{"get_weather"}}, porto, send, done)
	if asked := m.Requests(); !report.Passed() || *r != (really{read: 1}) ||
		!strings.Contains(string(asked[1].Contents[2]), `"celsius":21`) {
		t.Errorf("%+v, %+v", report, r)
	}
	a, err := eval.Of(countersign.Options{Provider: offline.Script(), Tools: r.tools()})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for name, want := range map[string]string{"send": "send changes something", "sned": "the agent has no tool sned"} {
		if _, err := eval.Run(t.Context(), a.Agent(), set, eval.Options{Reads: []string{name}}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an error with %q", name, err, want)
		}
	}
}

// TestRates repeats cases, has each pass by its own share, and reports an error of the model as a failed run.
func TestRates(t *testing.T) {
	set := load(t, map[string]string{"a.eval.yaml": `
repeat: 4
cases:
  - name: mostly
    prompt: How is Porto?
    answer: {contains: [18 DEGREES], lacks: [sorry], matches: '^\d+'}
    passes: 0.5
  - {name: always, prompt: Porto, answer: {reference: Porto has 18 degrees}, thresholds: {similar: 0.6}, repeat: 1}
  - {name: never, prompt: 'How is Porto?', repeat: 1}
`})
	report, _, _ := held(t, set, eval.Options{Repeat: 9}, agenttest.Say("18 degrees."),
		agenttest.Say("18 degrees, sorry."), agenttest.Say("It is 18 degrees."),
		agenttest.Say("18 Degrees in Porto."), agenttest.Say("18 degrees"),
		agenttest.Fail(403))
	var rates []string
	for _, c := range report.Cases {
		rates = append(rates, fmt.Sprintf("%s %.2f %v", c.ID(), c.PassRate(), c.Passed()))
	}
	if got := strings.Join(rates, ", "); got != "a.eval.yaml/mostly 0.50 true, a.eval.yaml/always 1.00 true, "+
		"a.eval.yaml/never 0.00 false" || report.Passed() {
		t.Error(got)
	}
	var table strings.Builder
	if err := report.Table(&table); err != nil {
		t.Fatal(err)
	}
	empty, _, _ := held(t, load(t, map[string]string{"b.eval.yaml": "cases: [{name: x, prompt: Hi.}]"}),
		eval.Options{}, done)
	if err := empty.Table(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"b.eval.yaml/x: it has no expectations",
		"1 of 1 cases passed, and 1 of these without a measure\n", "a.eval.yaml/mostly  50% of 4   50%    0.50   -\n",
		"a.eval.yaml/always  100% of 1  100%   -      0.67\n", "2 of 3 cases passed\n",
		"words: 0.00, needs 1.00. turn 1: the answer has \"sorry\": \"18 degrees, sorry.\"\n",
		"a.eval.yaml/never, run 1:\n  error: turn 1: ModelError refused: "} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
}

// TestMistakes names each mistake with its place, and runs the cases of the other files.
func TestMistakes(t *testing.T) {
	dir := folder(t, map[string]string{
		"good.eval.yaml": "cases: [{prompt: Hi.}]",
		"bad.eval.yaml": "never: get_weather\nrepeat: 1000\ncases:\n  - prompt: ''\n  - prompt: Hi.\n" +
			"    answer: {matches: '('}\n  - promt: Hi.\n",
		"calls.eval.yaml":  "cases:\n  - prompt: Hi.\n    calls: {match: sometimes, expect: [{args: {}}]}\n",
		"syntax.eval.yaml": "cases: [\n",
		"cut.evalset.json": "{\n\"eval_cases\": [",
		"kind.test.json": `{"eval_cases": [{"eval_id": "x"},` + "\n" +
			`{"conversation": [{"user_content": {"parts": 7}}]}]}`,
		"names.eval.yaml": "cases: [{prompt: Hi., never: [sned], approvals: {send: maybe}}]",
		"other.yaml":      "not cases",
	})
	if err := os.Symlink("/etc/hosts", filepath.Join(dir, "link.eval.yaml")); err != nil {
		t.Fatal(err)
	}
	set, err := eval.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	report, _, _ := held(t, set, eval.Options{}, done)
	if len(report.Cases) != 1 || !report.Cases[0].Passed() || report.Passed() {
		t.Errorf("%+v", report.Cases)
	}
	all := strings.Join(report.Problems, "\n")
	for _, want := range []string{
		"bad.eval.yaml:2: repeat: a number from 1 to 100 was expected",
		"bad.eval.yaml:4: cases[0]: prompt is missing; the user's words were expected",
		"bad.eval.yaml:6: cases[1].answer.matches: a regular expression of Go was expected: missing closing )",
		"bad.eval.yaml:7: cases[2].promt: this key is not known here; expected: name, ",
		"calls.eval.yaml:3: cases[0].calls.match: one of exact, in_order, any_order, set, subset was expected",
		"calls.eval.yaml:3: cases[0].calls.expect[0]: tool is missing; the name of a tool was expected",
		"syntax.eval.yaml:",
		"link.eval.yaml: not a regular file in the folder",
		"cut.evalset.json:2: this is not JSON: ",
		"kind.test.json:1: eval_cases[0]: conversation is missing",
		"kind.test.json:2: eval_cases[1].conversation[0].user_content.parts: a list was expected",
		"names.eval.yaml:1: cases[0].approvals.send: one of approve, reject was expected",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("missing %q in\n%s", want, all)
		}
	}
	if _, err := eval.Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no file of cases") {
		t.Error(err)
	}
	set = load(t, map[string]string{"a.eval.yaml": "cases: [{name: x, prompt: Hi., never: [sned]}]"})
	if report, _, _ := held(t, set, eval.Options{}, done); report.Passed() ||
		strings.Join(report.Problems, "") != "a.eval.yaml/x: never: there is no tool sned" {
		t.Errorf("%q", report.Problems)
	}
}

// TestWords compares words without regard to letters' case, forms of quotes and white space.
func TestWords(t *testing.T) {
	for answer, want := range map[string]bool{
		"It’s  10:00 in “CAFÉ Lisboa”":        true,
		"it's 10:00\nin \"café lisboa\"":       true,
		"it's 10:00 in the cafe":               false,
		"it's 10:00 in \"café lisboa\", sorry": false,
		"at 9: it's 10:00 in \"café lisboa\"":  false,
	} {
		set := load(t, map[string]string{"a.eval.yaml": `
cases:
  - prompt: When?
    answer:
      contains: ["it's 10:00", '"Café Lisboa"']
      lacks: Sorry
      matches: ^(?i)it
`})
		if report, _, _ := held(t, set, eval.Options{}, agenttest.Say(answer)); report.Passed() != want {
			t.Errorf("%q: %+v; want report.Passed() %v", answer, report.Cases, want)
		}
	}
}

// TestAgentOfOnesOwn evaluates another agent. One conversation does not end in time.
func TestAgentOfOnesOwn(t *testing.T) {
	set := load(t, map[string]string{"a.eval.yaml": `
repeat: 3
cases:
  - {name: quick, prompt: Hi., calls: [look], answer: {contains: [hello]}}
  - {name: slow, prompt: Wait., repeat: 1}
`})
	var begun, ended atomic.Int32
	a := eval.Agent{Name: "mine", Tools: map[string]bool{"look": false}, Begin: func(_ context.Context,
		s *eval.Stage) (eval.Conversation, error) {
		begun.Add(1)
		return eval.Conversation{Send: func(ctx context.Context, prompt string) (string, []eval.Call, error) {
			if prompt == "Wait." {
				<-ctx.Done()
				return "", nil, ctx.Err()
			}
			return "Hello.", []eval.Call{{Tool: "look"}}, nil
		}, Close: func() error { ended.Add(1); return nil }}, nil
	}}
	report, err := eval.Run(t.Context(), a, set, eval.Options{Timeout: time.Millisecond, Parallel: 8})
	if err != nil || !report.Cases[0].Passed() || report.Cases[1].Passed() || begun.Load() != 4 || ended.Load() != 4 ||
		report.Cases[1].Runs[0].Error != "turn 1: context deadline exceeded" {
		t.Errorf("%v %+v", err, report)
	}
}

// TestDocument reads the file of cases in the package's document.
func TestDocument(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for line := range strings.Lines(string(doc)) {
		if code, ok := strings.CutPrefix(line, "//\t"); ok {
			text.WriteString(code)
		}
	}
	set := load(t, map[string]string{"doc.eval.yaml": text.String()})
	if len(set.Cases) != 2 || set.Cases[0].Name != "lunch" || set.Cases[1].Agent != "concierge" {
		t.Errorf("%+v; want len(set.Cases) 2, set.Cases[0].Name “lunch”, set.Cases[1].Agent “concierge”", set.Cases)
	}
}

// TestInterrupted returns the runs that had ended when the evaluation was cancelled, and no others.
func TestInterrupted(t *testing.T) {
	set := load(t, map[string]string{"a.eval.yaml": "repeat: 3\ncases: [{prompt: Hi.}, {prompt: Hi.}]"})
	ctx, cancel := context.WithCancel(t.Context())
	sent := 0
	a := eval.Agent{Begin: func(context.Context, *eval.Stage) (eval.Conversation, error) {
		return eval.Conversation{Send: func(ctx context.Context, _ string) (string, []eval.Call, error) {
			if sent++; sent == 3 {
				cancel()
			}
			return "Hello.", nil, ctx.Err()
		}}, nil
	}}
	done := 0
	report, err := eval.Run(ctx, a, set, eval.Options{Parallel: 1, Done: func(*eval.Case, eval.RunResult) { done++ }})
	if !errors.Is(err, context.Canceled) || done != 2 || sent != 3 || len(report.Cases) != 1 ||
		len(report.Cases[0].Runs) != 2 || !report.Passed() {
		t.Errorf("%v %+v, %d done", err, report, done)
	}
}

// TestCompare finds what got worse and better since an earlier report, through a file.
func TestCompare(t *testing.T) {
	set := load(t, map[string]string{"a.eval.yaml": `
cases:
  - {name: first, prompt: Go., calls: []}
  - {name: second, prompt: Go., calls: [get_weather]}
  - {name: third, prompt: Go.}
`})
	before, _, _ := held(t, set, eval.Options{}, done, done, done)
	file := filepath.Join(t.TempDir(), "last.json")
	if err := before.Write(file); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	last, err := eval.ReadReport(file)
	if err != nil {
		t.Fatal(err)
	}
	set.Cases = set.Cases[:2]
	after, _, _ := held(t, set, eval.Options{}, porto, done, porto, done)
	var said strings.Builder
	if err := after.Compare(&said, last); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Worse:\n  a.eval.yaml/first: passed 100% → 0%, calls 1.00 → 0.00\n",
		"Better:\n  a.eval.yaml/second: passed 0% → 100%, calls 0.00 → 1.00\n",
		"  no longer there: a.eval.yaml/third\n"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("missing %q in\n%s", want, said.String())
		}
	}
	said.Reset()
	if err := before.Compare(&said, last); err != nil || !strings.Contains(said.String(), "no difference") {
		t.Error(err, said.String())
	}
}

// TestJudge has a model judge rubrics and references, by the majority of its answers. Without a judge, nothing fails,
// and the report names the measures without one.
func TestJudge(t *testing.T) {
	set := load(t, map[string]string{"a.eval.yaml": `
rubrics: [The agent is polite., The agent names the city.]
judge: {samples: 3}
cases:
  - {name: x, prompt: 'How is Porto?', answer: {reference: It is 18 degrees.}, thresholds: {equivalent: 1, rubric: 0.5}}
`})
	type verdict struct {
		Why  string `json:"why"`
		True bool   `json:"true"`
	}
	judged := func(all ...bool) offline.Turn {
		var v []verdict
		for _, yes := range all {
			v = append(v, verdict{fmt.Sprint("so it is ", yes), yes})
		}
		return offline.Call("final_answer", map[string]any{"verdicts": v})
	}
	// The order of the two measures is not defined, so the answers depend on the number of statements.
	model := &judge{answers: map[int][]bool{2: {true, false, true, false, false, true}, 1: {true, false, true}}}
	report, _, _ := held(t, set, eval.Options{Judge: model.judge}, agenttest.Say("18 degrees."))
	run := report.Cases[0].Runs[0]
	if !run.Passed || run.Measures[eval.Rubric].Score != 0.5 || run.Measures[eval.Equivalent].Score != 1 ||
		!strings.Contains(run.Measures[eval.Rubric].Why, "not true: The agent names the city. (no)") {
		t.Errorf("%+v", run)
	}
	report, _, _ = held(t, set, eval.Options{}, agenttest.Say("18 degrees."))
	var table strings.Builder
	if err := report.Table(&table); err != nil || !report.Passed() ||
		!strings.Contains(table.String(), "a.eval.yaml/x: rubric: no model judges\n") {
		t.Errorf("%v %s", err, table.String())
	}
	asked := offline.Script(judged(true, false), judged(true))
	j := eval.NewJudge(asked, "", "gemini-x")
	defer j.Close()
	q := eval.Question{Turns: []eval.Exchange{{Prompt: "How is Porto?", Answer: "18 </turns> degrees."}},
		Statements: []string{"It is polite.", "It is long."}}
	got, err := j.Judge(t.Context(), q)
	if err != nil || len(got) != 2 || !got[0].True || got[1].True || got[1].Why != "so it is false" {
		t.Errorf("%+v %v", got, err)
	}
	if r := asked.Requests()[0]; r.Model != "gemini-x" || !strings.Contains(string(r.Contents[0]), "It is long.") ||
		len(r.Tools) != 1 || !strings.Contains(string(r.Tools[0].Schema), "verdicts") {
		t.Errorf("%+v; want r.Model “gemini-x”, r.Contents[0] with “It is long.”, len(r.Tools) 1, "+
			"r.Tools[0].Schema with “verdicts”",
			r)
	}
	if _, err := j.Judge(t.Context(), q); err == nil || !strings.Contains(err.Error(), "1 of 2 statements") {
		t.Error(err)
	}
}

// judge answers questions by the number of their statements.
type judge struct{ answers map[int][]bool }

func (j *judge) judge(_ context.Context, q eval.Question) (all []eval.Verdict, err error) {
	n := len(q.Statements)
	for _, yes := range j.answers[n][:n] {
		all = append(all, eval.Verdict{True: yes, Why: map[bool]string{true: "yes", false: "no"}[yes]})
	}
	j.answers[n] = j.answers[n][n:]
	return all, nil
}
