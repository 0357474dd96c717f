package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/testkit/figures"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// made is an effect like issue that makes a handle first.
const made = "made"

// newSessions is an env that counts calls and has an agent that plans.
func newSessions(w *env) *proof {
	addArchitect(w)
	def := w.issueDef(made)
	def.Prepare = func(context.Context, tool.Call, issueArgs) (string, error) { return "a handle", nil }
	w.loop.Tools[made] = tool.Define(def)
	agent := w.loop.Agents[architect]
	agent.Tools = append(agent.Tools, made)
	agent.Limits.ModelCalls, agent.Limits.MaxOpen, agent.Limits.MaxPerDay = 10_000, 0, 0
	w.ticks = time.Now
	return measured(w)
}

// working is a model that plans some tasks, with some steps in each.
type working struct {
	tasks, steps int
	tool         string
	mu           sync.Mutex
	asked        func() // called at the request for a step; may be nil
}

func (*working) Name() string { return "working" }

func (m *working) Generate(_ context.Context, req model.Request, _ func(string)) (*model.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.ContainsFunc(req.Tools, func(s tool.Spec) bool { return s.Name == plan.ProposeTool }) {
		return called(plan.ProposeTool, m.plan()), nil
	}
	answered := 0
	for _, c := range req.Contents {
		if strings.HasPrefix(string(c), `{"role":"model"`) {
			answered++
		}
	}
	if m.asked != nil {
		m.asked()
	}
	switch {
	case answered >= m.steps:
		return called(plan.ReflectTool, `{"is_task_complete":true,"reflection":"It is done."}`), nil
	case m.tool == "lookup":
		return called(m.tool, fmt.Sprintf(`{"word":"w%d","reasoning":"To know it."}`, answered)), nil
	}
	return called(m.tool, fmt.Sprintf(`{"owner":"acme","repo":"web","title":"Nr %d","reasoning":"It is the task."}`,
		answered)), nil
}

func (m *working) plan() string {
	var tasks []string
	for i := range m.tasks {
		tasks = append(tasks, fmt.Sprintf(`{"title":"Task %d","goal":"It is done.","tools":[%q]}`, i, m.tool))
	}
	grants := ""
	if m.tool != "lookup" {
		grants = fmt.Sprintf(`,"grants":[{"tool":%q,"target":{"owner":"acme","repo":"web"},"maxCalls":10}]`, m.tool)
	}
	return fmt.Sprintf(`{"tasks":[%s]%s}`, strings.Join(tasks, ","), grants)
}

func called(name, args string) *model.Reply {
	content := fmt.Sprintf(
		`{"role":"model","parts":[{"functionCall":{"id":"c1","name":%q,"args":%s},"thoughtSignature":"c2ln"}]}`, name, args)
	return &model.Reply{Content: json.RawMessage(content), Finish: "STOP", Model: "working",
		Calls: []model.Call{{ID: "c1", Name: name, Args: json.RawMessage(args)}}}
}

// planned starts a session of the user and returns it with its waiting plan.
func (p *proof) planned(uid string) (*run.View, error) {
	req, in := p.session("do it", 48*time.Hour)
	req.UID = uid
	return p.loop.Start(context.Background(), req, in)
}

// confirms confirms the waiting plan as the user.
func (p *proof) confirms(uid string, v *run.View) error {
	_, err := p.loop.Resolve(context.Background(), approval.Resolution{UID: uid, ApprovalID: v.Waiting[0].ApprovalID,
		Decision: run.ApproveOnce, ArgsHash: v.Waiting[0].ArgsHash})
	return err
}

// sessionCost returns the cost of the confirmation, and of all that follows.
func sessionCost(t *testing.T, m *working) (confirm, rest cost) {
	t.Helper()
	p := newSessions(newEnv(t))
	p.meter.Model = m
	v, err := p.planned("ana")
	if err != nil {
		t.Fatal(err)
	}
	p.take()
	if err := p.confirms("ana", v); err != nil {
		t.Fatal(err)
	}
	confirm, _, _ = p.take()
	if err := p.resume(); err != nil {
		t.Fatal(err)
	}
	rest, _, _ = p.take()
	if s := p.sessionOf(t.Context(), v.RunID); s.Status() != plan.StatusCompleted {
		t.Fatalf("it is %s: %s", s.Status(), s.Why)
	}
	return confirm, rest
}

// TestSessionCost counts the cost of a session, of one more step, and of one more task with the same number of steps in
// total.
func TestSessionCost(t *testing.T) {
	confirm, one := sessionCost(t, &working{tasks: 1, steps: 1, tool: "lookup"})
	if confirm.reads != 1 || confirm.commits != 1 || confirm.model != 0 {
		t.Errorf("a confirmation takes %+v", confirm)
	}
	for name, want := range map[string]int{"lookup": 2, "issue": 2, made: 3} {
		_, less := sessionCost(t, &working{tasks: 1, steps: 2, tool: name})
		_, more := sessionCost(t, &working{tasks: 1, steps: 5, tool: name})
		if more.commits-less.commits != 3*want || more.reads != less.reads || more.model-less.model != 3 {
			t.Errorf("three steps of %s take %+v, from %+v", name, more, less)
		}
	}
	// The end of a task is part of the commit that stores its last answer. A second task of one step therefore adds one
	// answer and one step.
	_, two := sessionCost(t, &working{tasks: 2, steps: 1, tool: "lookup"})
	if two.commits-one.commits != 2+1 || two.model-one.model != 1+1 || two.reads != one.reads {
		t.Errorf("a second task of one step takes %+v, from %+v", two, one)
	}
}

// TestSessionObservationsBounded lets a session read more than is kept. Each result is there, the last ones cut, and
// the session continues.
func TestSessionObservationsBounded(t *testing.T) {
	realpart.Unraced(t)
	p := newSessions(newEnv(t))
	p.loop.Tools["lookup"] = tool.Define(tool.Def[struct {
		Word string `json:"word"`
	}, string]{Name: "lookup", Description: "Looks a word up.",
		Execute: func(_ context.Context, c tool.Call, _ struct {
			Word string `json:"word"`
		}) (string, error) {
			return c.ActionID + strings.Repeat("x", 60<<10), nil
		}})
	p.meter.Model = &working{tasks: 5, steps: 15, tool: "lookup"}
	v, err := p.planned("ana")
	if err == nil {
		err = p.confirms("ana", v)
	}
	if err == nil {
		v, err = p.loop.Advance(t.Context(), v.RunID, nil)
	}
	if err != nil || v.Status != run.Completed {
		t.Fatalf("%v, %+v; want v.Status %v", err, v, run.Completed)
	}
	kept, cut := 0, 0
	for _, task := range p.sessionOf(t.Context(), v.RunID).Tasks {
		for _, a := range task.Acts {
			if kept += len(a.Observation); len(a.Observation) < 8<<10 {
				cut++
			}
		}
	}
	if kept > plan.MaxObserved+75*(8<<10) || kept < plan.MaxObserved || cut == 0 {
		t.Errorf("%d bytes are kept, and %d observations are cut", kept, cut)
	}
}

// BenchmarkSession measures sessions on the embedded store in its usual form, with a model that takes no time.
//
//	go test ./shared/engine/loop -run '^$' -bench Session -benchmem
func BenchmarkSession(b *testing.B) {
	b.Run("8 clients", benchmarkSessions)
	b.Run("200 steps", benchmarkSteps200)
	b.Run("confirm", benchmarkConfirm)
	b.Run("20 confirmations", benchmarkConfirmations)
}

// benchmarkSessions lets 8 clients make sessions of 5 tasks with 3 steps, one after the other.
func benchmarkSessions(b *testing.B) {
	w := newSessions(newFileEnv(b)).env
	w.loop.Model = &working{tasks: 5, steps: 3, tool: "lookup"}
	began := time.Now()
	b.SetParallelism(max(1, 8/runtime.GOMAXPROCS(0)))
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		p := &proof{env: w}
		uid := fmt.Sprintf("user%d", n.Add(1))
		for pb.Next() {
			if err := p.whole(uid); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "sessions/s")
}

// whole makes a session of the user and advances it to its end.
func (p *proof) whole(uid string) error {
	v, err := p.planned(uid)
	if err != nil {
		return err
	}
	if err := p.confirms(uid, v); err != nil {
		return err
	}
	if v, err = p.loop.Advance(context.Background(), v.RunID, nil); err == nil && v.Status != run.Completed {
		err = fmt.Errorf("it is %s: %s", v.Status, v.Summary)
	}
	return err
}

// benchmarkSteps200 measures the time between an answer of the model and the next request: for all steps of a session
// of 200, for those about the 10th, and for the last ones.
func benchmarkSteps200(b *testing.B) {
	w := newSessions(newFileEnv(b)).env
	var all, early, late figures.Times
	for b.Loop() {
		var asked []time.Time
		w.loop.Model = &working{tasks: 20, steps: 10, tool: "lookup",
			asked: func() { asked = append(asked, time.Now()) }}
		if err := (&proof{env: w}).whole("ana"); err != nil {
			b.Fatal(err)
		}
		for i := 1; i < len(asked); i++ {
			took := asked[i].Sub(asked[i-1])
			switch all = append(all, took); {
			case i >= 5 && i < 15:
				early = append(early, took)
			case i >= len(asked)-10:
				late = append(late, took)
			}
		}
	}
	all.Report(b, "step")
	early.Report(b, "10th")
	late.Report(b, "200th")
}

// benchmarkConfirm measures the time between the confirmation and the request after the first act.
func benchmarkConfirm(b *testing.B) {
	w := newSessions(newFileEnv(b)).env
	var took figures.Times
	for b.Loop() {
		var asked []time.Time
		w.loop.Model = &working{tasks: 1, steps: 1, tool: "lookup",
			asked: func() { asked = append(asked, time.Now()) }}
		p := &proof{env: w}
		v, err := p.planned("ana")
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		if err := p.confirms("ana", v); err != nil {
			b.Fatal(err)
		}
		if _, err := p.loop.Advance(context.Background(), v.RunID, nil); err != nil {
			b.Fatal(err)
		}
		took = append(took, asked[1].Sub(began))
	}
	took.Report(b, "first-act")
}

// benchmarkConfirmations measures the time of 20 confirmations of one plan that arrive at once.
func benchmarkConfirmations(b *testing.B) {
	w := newSessions(newFileEnv(b)).env
	w.loop.Model = &working{tasks: 1, steps: 1, tool: "lookup"}
	var took figures.Times
	for b.Loop() {
		p := &proof{env: w}
		v, err := p.planned("ana")
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if err := p.confirms("ana", v); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
		took.Since(began)
	}
	took.Report(b, "all")
}
