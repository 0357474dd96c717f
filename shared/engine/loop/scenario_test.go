package loop_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// clockOf matches the time of day in a card's warning. It differs between runs of the tests.
var clockOf = regexp.MustCompile(`\b\d\d:\d\d UTC\b`)

var update = flag.Bool("update", false, "write what the scenarios print into their files")

// TestScenarios plays the transcripts of testdata/scenarios. A line "$ command" is a command, and the lines below it
// are its expected output: the run's new events, and then the command's result.
func TestScenarios(t *testing.T) { onEachStore(t, scenarios) }

func scenarios(t *testing.T, open func(testing.TB) *env) {
	for name, want := range transcripts(t) {
		t.Run(name, func(t *testing.T) {
			if name == "taint-much" { // it computes on megabytes
				realpart.Unraced(t)
			}
			s := newScenario(t, open(t))
			got := s.play(want)
			if *update {
				if err := os.WriteFile("testdata/scenarios/"+name+".txt", []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			s.compare(want, got)
		})
	}
}

// transcripts returns the texts of the scenarios by their names.
func transcripts(t *testing.T) map[string]string {
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	all := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".txt")] = string(text)
	}
	return all
}

func (s *scenario) compare(want, got string) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("the transcript differs (go test -run Scenarios -update writes it):\n%s", diff(want, got))
	}
	s.check()
}

// TestScenariosInAMinute plays the scenarios with the platform's default limit for a call of a function, and with a
// slow model and slow providers. The results are the same, and no run is handed over.
func TestScenariosInAMinute(t *testing.T) {
	for name, want := range transcripts(t) {
		if name == "terminal-bound" || name == "taint-much" {
			continue // all their calls take longer, so the run is handed over in their middle
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &env{t: t, now: began}
				w.on(memory.New(w.clock), func(time.Duration) {})
				w.call, w.slow = time.Minute, 2*time.Second
				w.assistant().Limits = w.assistant().Limits.Within(w.call)
				w.loop.Model = slow{w.model, 4 * time.Second}
				s := newScenario(t, w)
				s.compare(want, s.play(want))
			})
		})
	}
}

// slow is a model that takes time to answer.
type slow struct {
	*script.Model
	takes time.Duration
}

func (s slow) Generate(ctx context.Context, req model.Request, delta func(string)) (*model.Reply, error) {
	time.Sleep(s.takes)
	return s.Model.Generate(ctx, req, delta)
}

func diff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d:\n  want %s\n  got  %s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("want %d lines, got %d", len(w), len(g))
}

const anyObject = `{"type":"object"}`

type scenario struct {
	*env
	uid    string
	agent  string // the agent that "ask" addresses
	thread string
	state  string // the state of a session's repository; empty: any
	form   string // JSON Schema of the requested answers; empty: text
	brings []run.PageTool
	shows  []run.PageContext
	run    string // the newest run
	runs   []string
	seen   map[string]int // events printed, by run
	out    strings.Builder
	all    struct { // all existing ones
		Agents registry.Set
		Tools  tool.Set
	}
}

// newScenario adds to the env the tools that a client carries out, and the tools that declare more than others.
func newScenario(t *testing.T, w *env) *scenario {
	w.loop.Tools["click"], w.loop.Tools["sign"] = remote(t), sign(t)
	for _, declared := range w.declared() {
		w.loop.Tools[declared.Name] = declared
	}
	w.loop.Agents["clerk"] = testAgent("clerk", "You are a clerk.")
	w.loop.Agents["clerk"].Tools = []string{"draft", "lookup"}
	w.loop.Agents["host"] = testAgent("host", "You are a host.")
	w.loop.Agents["host"].Exclusive = true
	w.loop.Agents["planner"] = testAgent("planner", "You are a planner.")
	w.loop.Agents["planner"].Order, w.loop.Agents["planner"].OnReject = registry.Strict, registry.RejectContinues
	w.loop.Agents["maker"] = testAgent("maker", "You are a maker.")
	w.loop.Agents["maker"].Order, w.loop.Agents["maker"].OnReject = registry.Sequential, registry.RejectContinues
	workOnTerminal(t, w)
	addArchitect(w)
	return &scenario{env: w, uid: "ana", seen: map[string]int{}}
}

// workOnTerminal adds the agent of terminals, with its limit on calls of the model, and a terminal of ana's on a host
// that runs read-only commands without an approval.
func workOnTerminal(t *testing.T, w *env) {
	onTerminal(t, w)
	agent := w.loop.Agents[run.Terminal]
	agent.Order, agent.OnReject, agent.Limits.ModelCalls = registry.Strict, registry.RejectContinues, 20
	h := &host{env: w, calls: map[string]*begun{}}
	h.set(t, terminalDoc{AutoRun: true})
	command, complete := h.command(), w.answer()
	command.Limit = func(commandArgs) time.Duration { return 10 * time.Second }
	command.Execute = func(ctx context.Context, c tool.Call, in commandArgs) (commandResult, error) {
		out, err := h.execute(ctx, c, in)
		w.did("ran " + in.Command)
		return out, err
	}
	complete.Name = "task_complete"
	w.loop.Tools[command.Name], w.loop.Tools[complete.Name] = tool.Define(command), complete
}

// play carries out the commands of a transcript and returns it with its present output.
func (s *scenario) play(text string) string {
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "$ "):
			fmt.Fprintln(&s.out, line)
			s.do(line[2:])
		case strings.HasPrefix(line, "#"), line == "":
			fmt.Fprintln(&s.out, line)
		}
	}
	return s.out.String()
}

// restart kills the process and starts another. "assistant; send lookup" names its agents and its tools. Without tools
// it has all.
func (s *scenario) restart(has string) {
	if s.all.Agents == nil {
		s.all.Agents, s.all.Tools = s.loop.Agents, s.loop.Tools
	}
	names, tools, some := strings.Cut(has, "; ")
	s.loop = s.process()
	s.loop.Agents, s.loop.Tools = registry.Set{}, s.all.Tools
	for _, name := range strings.Fields(names) {
		s.loop.Agents[name] = s.all.Agents[name]
	}
	if some {
		s.loop.Tools = tool.Set{}
		for _, name := range strings.Fields(tools) {
			s.loop.Tools[name] = s.all.Tools[name]
		}
	}
}

// moment matches a time in a message. It differs between stores.
var moment = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|` +
	`[A-Z][a-z]+day, \d+ [A-Z][a-z]+( \d{4})?, \d\d:\d\d( \(UTC\))?`)

// sentID matches the random ID of a sent message, in a response to the model.
var sentID = regexp.MustCompile(`"id":"[a-z2-7]{6}"`)

func (s *scenario) say(format string, args ...any) {
	line := moment.ReplaceAllString(fmt.Sprintf(format, args...), "(then)")
	fmt.Fprintln(&s.out, "  "+sentID.ReplaceAllString(line, `"id":"(new)"`))
}

func (s *scenario) do(line string) {
	ctx, cancel := s.calling(context.Background())
	defer cancel()
	verb, rest, _ := strings.Cut(line, " ")
	var v *run.View
	var err error
	switch verb {
	case "model": // which says (in an hour) for that moment
		inAnHour := s.clock().Add(time.Hour).UTC().Format(time.RFC3339)
		s.model.Then(turn(s.t, strings.ReplaceAll(rest, "(in an hour)", inAnHour)))
		return
	case "as":
		s.uid = rest
		return
	case "agent":
		s.agent = rest
		return
	case "process": // kills the previous process; the new one has these agents and these tools
		s.restart(rest)
		return
	case "home": // the worker of an agent
		name, function, _ := strings.Cut(rest, " ")
		s.loop.Agents[name].Worker = function
		return
	case "function": // the function that this process is from now on
		s.loop.Function = rest
		return
	case "ask":
		v, err = s.start(ctx, rest)
		if err == nil {
			s.run, s.thread, s.runs = v.RunID, v.ThreadID, append(s.runs, v.RunID)
		}
	case "wish": // for a session
		v, err = s.wish(ctx, rest)
		if err == nil {
			s.run, s.thread, s.runs = v.RunID, v.ThreadID, append(s.runs, v.RunID)
		}
	case "repository": // the text that the next session reads in its own repository
		s.state = strings.ReplaceAll(rest, " / ", "\n")
		return
	case "confirm":
		v, err = s.confirm(ctx, rest)
	case "session":
		s.planned(ctx)
		return
	case "card":
		s.card()
		return
	case "take-back":
		err = (loop.Grants{Loop: s.loop}).Revoke(ctx, s.uid, s.run, rest)
	case "resolve":
		v, err = s.resolve(ctx, rest)
	case "look": // as GET /runs/{runId} does
		before := s.version(ctx)
		v, _, err = s.loop.Get(ctx, s.uid, s.run)
		if n := s.version(ctx); n != before {
			s.t.Errorf("%s: reading the run has written: %s, then %s", line, before, n)
		}
	case "advance":
		v, err = s.loop.Advance(ctx, s.run, nil)
	case "deliver":
		err = s.deliver(ctx)
	case "kill": // the process to which the queue delivers, in the middle of its first effect
		s.next = append(s.next, "die")
		dead := make(chan struct{})
		go func() {
			defer close(dead)
			err := s.deliver(ctx)
			s.t.Errorf("the process lives on: %v", err)
		}()
		<-dead
	case "answer":
		v, err = s.answer(ctx, rest)
	case "calls":
		waiting, _, err := s.loop.Get(ctx, s.uid, s.run)
		if err != nil {
			s.t.Fatal(err)
		}
		for i, c := range waiting.Calls {
			s.say("#%d %s %s, for another %s", i+1, c.Tool, c.Args, c.ExpiresAt.Sub(s.clock()).Round(time.Minute))
		}
		return
	case "form": // of the requested answers
		s.form = rest
		return
	case "brings": // a tool of the page, with its description
		name, says, _ := strings.Cut(rest, " ")
		s.brings = append(s.brings, run.PageTool{Name: name, Description: says, Schema: json.RawMessage(anyObject)})
		return
	case "shows": // a part of the page's description, or nothing at the end
		s.shows = append(s.shows, run.PageContext{Description: "The page", Value: rest})
		if rest == "" {
			s.shows = nil
		}
		return
	case "answered": // in that form
		_, events, err := s.loop.Get(ctx, s.uid, s.run)
		if err != nil {
			s.t.Fatal(err)
		}
		state, err := run.Fold(events)
		if err != nil {
			s.t.Fatal(err)
		}
		s.say("%s", state.Answer())
		return
	case "anew": // in another thread
		s.thread = ""
		return
	case "run": // the run that the commands are about from now on
		n, perr := strconv.Atoi(rest)
		if perr != nil {
			s.t.Fatal(perr)
		}
		s.run = s.runs[n-1]
		return
	case "cancel":
		v, err = s.loop.Cancel(ctx, s.uid, s.run)
	case "sweep":
		var swept loop.SweepResult
		swept, err = s.loop.Sweep(ctx)
		s.say("due %d, published %d", swept.Due, swept.Published)
	case "tick":
		d, perr := time.ParseDuration(rest)
		if perr != nil {
			s.t.Fatal(perr)
		}
		s.tick(d)
		return
	case "provider":
		s.next = append(s.next, strings.Fields(rest)...)
		return
	case "settle":
		s.settle = append(s.settle, strings.Fields(rest)...)
		return
	case "lose":
		s.queue = nil
		return
	case "rules":
		s.loop.Rules.DenySideEffects, s.loop.Rules.AskSideEffects = rest == "off", rest == "ask"
		return
	case "reject-outcome":
		s.loop.Agents.Get(s.agent).OnReject = registry.OnReject(rest)
		return
	case "approval-ttl":
		s.assistant().Limits.ApprovalTTL, err = time.ParseDuration(rest)
	case "max-calls":
		s.assistant().Limits.ModelCalls, err = strconv.Atoi(rest)
	case "pending":
		for i, a := range s.open(s.uid) {
			s.say("#%d %s: %s", i+1, a.Kind, a.Preview.Title)
			for _, warning := range a.Preview.Warnings {
				s.say("   careful: %s", clockOf.ReplaceAllString(warning, "TIME"))
			}
			s.findings(a)
			for _, f := range a.Preview.Fields {
				if a.Kind == run.KindReview {
					s.say("   %s: %s", f.Label, f.Value)
				}
			}
		}
		return
	case "thread":
		page, err := s.rec.Messages(ctx, s.uid, s.thread, 1<<40, 100)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, m := range page.Messages {
			s.say("%s: %s", m.Role, strings.ReplaceAll(m.Text, "\n", " / "))
		}
		return
	case "told": // the newest request to the model, without its own calls and the records of earlier runs
		s.told()
		return
	case "effects":
		for _, e := range s.effects {
			s.say("%s", e)
		}
		return
	default:
		s.t.Fatalf("no such command: %s", line)
	}
	for _, id := range s.runs {
		s.events(ctx, id)
	}
	if err != nil {
		f := fault.As(err)
		s.say("! %s %s: %s", f.Class, f.Code, f.Message)
	} else if v != nil {
		s.say("= %s: %s", v.Status, strings.ReplaceAll(v.Summary, "\n", " / "))
	}
}

func (s *scenario) start(ctx context.Context, prompt string) (*run.View, error) {
	in := loop.Prompt{Text: prompt, PageTools: s.brings, PageContext: s.shows}
	if agent := s.loop.Agents.Get(s.agent); agent != nil && agent.OnTerminal {
		in.Terminal = anasTerminal
	}
	if s.form != "" {
		in.Answer = json.RawMessage(s.form)
	}
	return s.loop.Start(ctx, loop.StartRequest{UID: s.uid, Agent: s.agent, ThreadID: s.thread}, in)
}

// told prints the texts and the responses in the model's newest request.
func (s *scenario) told() {
	requests := s.model.Requests()
	for _, raw := range requests[len(requests)-1].Contents {
		var c struct {
			Role  string
			Parts []struct {
				Text             string
				FunctionResponse struct{ Response json.RawMessage }
			}
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			s.t.Fatal(err)
		}
		for _, p := range c.Parts {
			switch {
			case p.Text != "" && !strings.HasPrefix(p.Text, "[record "):
				s.say("%s: %s", c.Role, strings.ReplaceAll(p.Text, "\n", " / "))
			case p.FunctionResponse.Response != nil:
				s.say("%s", p.FunctionResponse.Response)
			}
		}
	}
}

// turn reads "text …", "call name {…}; name" (without arguments), "error", or "correction …".
func turn(t testing.TB, s string) script.Turn {
	kind, rest, _ := strings.Cut(s, " ")
	switch kind {
	case "text":
		return script.Turn{Text: rest}
	case "error":
		return script.Turn{Err: fault.New(fault.Model, "busy", "The model is busy.")}
	case "correction":
		return script.Turn{Correction: rest}
	case "call":
		var calls []script.Call
		for _, c := range strings.Split(rest, "; ") {
			name, args, _ := strings.Cut(c, " ")
			call := script.Call{Name: name}
			if args != "" {
				call.Args = json.RawMessage(args)
			}
			calls = append(calls, call)
		}
		return script.Turn{Calls: calls}
	}
	t.Fatalf("no such turn: %s", s)
	return script.Turn{}
}

// resolve parses "<n> <decision> [editedArgs]". n is the approval's number within the run, as "pending" prints it.
func (s *scenario) resolve(ctx context.Context, rest string) (*run.View, error) {
	n, rest, _ := strings.Cut(rest, " ")
	decision, edited, _ := strings.Cut(rest, " ")
	i, err := strconv.Atoi(n)
	if err != nil {
		s.t.Fatal(err)
	}
	r := approval.Resolution{UID: s.uid, ApprovalID: run.ApprovalID(s.run, i), Decision: run.Decision(decision)}
	if r.Decision == run.ApproveEdited {
		r.EditedArgs = json.RawMessage(edited)
	} else if edited != "" {
		r.Comment = edited
	}
	return s.loop.Resolve(ctx, r)
}

// answer parses "<n> <result>" or "<n> error <text>". n is the number of the action within the run.
func (s *scenario) answer(ctx context.Context, rest string) (*run.View, error) {
	n, rest, _ := strings.Cut(rest, " ")
	i, err := strconv.Atoi(n)
	if err != nil {
		s.t.Fatal(err)
	}
	v, _, err := s.loop.Get(ctx, s.uid, s.run)
	if err != nil {
		return nil, err
	}
	given := effect.CallAnswer{ActionID: v.Actions[i-1].ActionID, Result: json.RawMessage(rest)}
	if words, failed := strings.CutPrefix(rest, "error "); failed {
		given.Result, given.Error = nil, words
	}
	return s.loop.Answer(ctx, s.uid, s.run, given)
}

// version returns the version of the run's document.
func (s *scenario) version(ctx context.Context) string {
	docs, err := s.store.Get(ctx, document.RunPath(s.run))
	if err != nil {
		s.t.Fatal(err)
	}
	return docs[0].Version.String()
}

// events prints the run's new events.
func (s *scenario) events(ctx context.Context, id string) {
	owner := s.uid
	_, events, err := s.loop.Get(ctx, owner, id)
	if err != nil {
		return // another user's
	}
	views, err := run.ViewEvents(nil, nil, events, int64(s.seen[id]))
	if err != nil {
		s.t.Fatal(err)
	}
	s.seen[id] = len(events)
	for _, e := range views {
		s.say("%s", eventLine(e, events[e.Seq-1]))
	}
}

func eventLine(v run.EventView, e run.Event) string {
	parts := []string{string(v.Type)}
	switch {
	case e.Turn != nil && e.Turn.Correction != "":
		parts = append(parts, "correction")
	case e.Turn != nil:
		parts = append(parts, fmt.Sprintf("%d calls", e.Turn.Calls))
	case e.Proposed != nil:
		parts = append(parts, e.Proposed.Tool, e.Proposed.PolicyDecision)
	case e.Wait != nil:
		parts = append(parts, string(e.Wait.Kind))
	case e.Decided != nil:
		parts = append(parts, string(e.Decided.Decision))
	case e.Started != nil:
		parts = append(parts, v.Action.Tool, fmt.Sprintf("attempt %d", e.Started.Attempt))
	case e.Finished != nil:
		parts = append(parts, v.Action.Tool, string(e.Finished.Status), string(e.Finished.Execution))
		if p := e.Finished.Error; p != nil {
			parts = append(parts, string(p.Class), string(p.Code))
			if e.Finished.Result != nil {
				parts = append(parts, "with "+string(e.Finished.Result))
			}
		}
	case e.Planned != nil:
		parts = append(parts, planLine(*e.Planned))
	case v.Status != "":
		parts = append(parts, string(v.Status))
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// check checks the condition at the end of every scenario: Gemini would have accepted every request.
func (s *scenario) check() {
	for _, id := range s.runs {
		_, events, err := s.loop.Get(context.Background(), s.uid, id)
		if err != nil {
			continue // another user's
		}
		if end := events[len(events)-1].End; end != nil && end.Error != nil && end.Error.Code == model.CodeRefused {
			s.t.Errorf("a request that Gemini would refuse: %s", end.Error.Message)
		}
	}
	if n := s.model.Left(); n != 0 {
		s.t.Errorf("%d turns of the model were not asked for", n)
	}
}
