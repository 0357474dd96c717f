package loop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// breaking is a tool whose function panics or kills its process, as do does.
func breaking(w *env, do func()) *tool.Tool {
	return tool.Define(tool.Def[lookupArgs, lookupResult]{Name: "break", Description: "Breaks.",
		Execute: func(context.Context, tool.Call, lookupArgs) (lookupResult,
			error) {
			do()
			return lookupResult{}, nil
		}})
}

var aWord = map[string]any{"word": "ten"}

// TestPanicOfReadingTool lets a reading tool panic. The model gets one failure, and the process lives.
func TestPanicOfReadingTool(t *testing.T) {
	ctx, w := context.Background(), newEnv(t)
	tries, logs := 0, &bytes.Buffer{}
	w.loop.Log = slog.New(slog.NewTextHandler(logs, nil))
	w.loop.Tools["break"] = breaking(w, func() { tries++; panic("CANARY") })
	w.model.Then(script.Turn{Calls: []script.Call{{Name: "break", Args: aWord}}},
		script.Turn{Text: "It cannot be looked up."})
	v, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "look it up"})
	if err != nil || v.Status != run.Completed || tries != 1 || v.Actions[0].ErrorReason != "tool_panicked" ||
		strings.Contains(v.Actions[0].Message, "CANARY") {
		t.Errorf("%v, %d tries, %+v %+v", err, tries, v, v.Actions[0])
	}
	checkPanicLogged(t, logs, "TestPanicOfReadingTool")
}

// checkPanicLogged checks that the log contains the place of the panic, and not its value.
func checkPanicLogged(t *testing.T, logs *bytes.Buffer, in string) {
	t.Helper()
	if text := logs.String(); !strings.Contains(text, "counter=tool_panic") || !strings.Contains(text, in) ||
		strings.Contains(text, "CANARY") {
		t.Errorf("the log has\n%s", text)
	}
}

// TestPanicOfEffect lets a tool panic after it acted, once without a way to learn the outcome and once with one.
func TestPanicOfEffect(t *testing.T) {
	for name, want := range map[string]run.Execution{"send": run.UnknownState, "draft": run.Succeeded} {
		ctx, w, logs := context.Background(), newEnv(t), &bytes.Buffer{}
		w.loop.Log = slog.New(slog.NewTextHandler(logs, nil))
		w.loop.Model = &asked{tool: name}
		v, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "tell bob"})
		if err == nil {
			_, err = w.loop.Resolve(ctx,
				approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(v.RunID, 1), Decision: run.ApproveOnce})
		}
		w.next = []string{"panic"}
		if err == nil {
			v, err = w.loop.Advance(ctx, v.RunID, nil)
		}
		if err != nil || v.Actions[0].ExecutionStatus != want || len(w.effects) != 1 {
			t.Errorf("%s: %v, done %d times, %+v", name, err, len(w.effects), v.Actions[0])
		}
		checkPanicLogged(t, logs, "(*env).effect")
		if parked := len(w.open("ana")) == 1; parked != (want == run.UnknownState) {
			t.Errorf("%s: left to its user: %t", name, parked)
		}
	}
}

// TestPanicOfReconcile lets Reconcile panic. The outcome is unknown, the effect is not repeated, and the log contains
// the reason.
func TestPanicOfReconcile(t *testing.T) {
	w, logs := newEnv(t), &bytes.Buffer{}
	w.loop.Log = slog.New(slog.NewTextHandler(logs, nil))
	d := w.sendDef("send")
	d.Reconcile = func(context.Context, tool.Call, sendArgs) (tool.Verdict, sendResult, string,
		error) {
		panic("CANARY")
	}
	w.loop.Tools["send"], w.loop.Model = tool.Define(d), &asked{tool: "send"}
	v := start(t, w, "tell bob")
	w.approve(t, v.RunID, 1)
	w.next = []string{"ambiguous"}
	v, err := w.loop.Advance(t.Context(), v.RunID, nil)
	if err != nil || v.Actions[0].ExecutionStatus != run.UnknownState || len(w.effects) != 1 ||
		len(w.open("ana")) != 1 {
		t.Errorf("%v, done %d times, %+v", err, len(w.effects), v.Actions[0])
	}
	checkPanicLogged(t, logs, "TestPanicOfReconcile")
}

// TestPanicOfCard lets the functions panic that make a snapshot. The call is rejected, and the run continues.
func TestPanicOfCard(t *testing.T) {
	for name, change := range map[string]func(*tool.Def[sendArgs, sendResult]){
		"normalize": func(d *tool.Def[sendArgs,
			sendResult]) {
			d.Normalize = func(sendArgs) (sendArgs, error) { panic(1) }
		},
		"preview": func(d *tool.Def[sendArgs, sendResult]) { d.Preview = func(sendArgs) tool.Preview { panic(1) } },
		"place": func(d *tool.Def[sendArgs, sendResult]) {
			d.Place = func(context.Context, tool.Scope) (tool.Place, error) { panic(1) }
		},
		"targets": func(d *tool.Def[sendArgs, sendResult]) { d.Targets = func(sendArgs) []tool.Target { panic(1) } },
	} {
		w := newEnv(t)
		d := w.sendDef("send")
		change(&d)
		w.loop.Tools["send"] = tool.Define(d)
		w.model.Then(script.Turn{
			Calls: []script.Call{{Name: "send", Args: map[string]any{"to": []string{"bob@x.org"}, "text": "ten"}}}},
			script.Turn{Text: "It cannot be sent."})
		v, err := w.loop.Start(context.Background(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "tell bob"})
		if err != nil || v.Status != run.Completed || v.Actions[0].ErrorReason != "tool_panicked" {
			t.Errorf("%s: %v %+v; want v.Status %v, v.Actions[0].ErrorReason “tool_panicked”",
				name, err, v, run.Completed)
		}
	}
}

// deadly is a model that kills its process.
type deadly struct {
	*script.Model
	do func()
}

func (d deadly) Generate(ctx context.Context, r model.Request, stream func(string)) (*model.Reply, error) {
	d.do()
	return d.Model.Generate(ctx, r, stream)
}

// dying runs f in a process that may end in the middle of it.
func dying(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// TestAttemptsOfKillingStep has a step that kills each process that starts it, and a sweep every minute for six hours.
// The step is started a limited number of times, at growing intervals. Then the run ends with an error.
func TestAttemptsOfKillingStep(t *testing.T) { onEachStore(t, killsEveryProcess) }

func killsEveryProcess(t *testing.T, open func(testing.TB) *env) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		set func(w *env, do func())
		end run.Status
	}{
		"the model": {func(w *env, do func()) { w.loop.Model = deadly{w.model, do} }, run.Failed},
		"a tool that reads": {func(w *env, do func()) {
			w.loop.Tools["break"] = breaking(w, do)
			w.model.Then(script.Turn{Calls: []script.Call{{Name: "break", Args: aWord}}})
		}, run.Failed},
		"an effect that is known not to have been": {func(w *env, do func()) {
			d := w.sendDef("send")
			d.Approval, d.Normalize = tool.NotRequired, nil
			d.Execute = func(context.Context, tool.Call, sendArgs) (sendResult,
				error) {
				do()
				return sendResult{}, nil
			}
			d.Reconcile = func(context.Context, tool.Call, sendArgs) (tool.Verdict, sendResult, string, error) {
				return tool.NotDone, sendResult{}, "", nil
			}
			w.loop.Tools["send"] = tool.Define(d)
			w.model.Then(script.Turn{
				Calls: []script.Call{{Name: "send", Args: map[string]any{"to": []string{}, "text": "ten"}}}})
		}, run.Awaiting},
		"what settles an effect": {func(w *env, do func()) {
			d := w.sendDef("send")
			d.Approval, d.Normalize = tool.NotRequired, nil
			d.Execute = func(context.Context, tool.Call, sendArgs) (sendResult, error) {
				runtime.Goexit()
				return sendResult{}, nil
			}
			d.Reconcile = func(context.Context, tool.Call, sendArgs) (tool.Verdict, sendResult, string, error) {
				do()
				return tool.NotDone, sendResult{}, "", nil
			}
			w.loop.Tools["send"] = tool.Define(d)
			w.model.Then(script.Turn{
				Calls: []script.Call{{Name: "send", Args: map[string]any{"to": []string{}, "text": "ten"}}}})
		}, run.Awaiting},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			var starts []time.Time
			c.set(w, func() { starts = append(starts, w.clock()); runtime.Goexit() })
			runID := ""
			dying(func() {
				_, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana",
					Sink: func(n unit.Update) { runID = n.RunID }}, loop.Prompt{Text: "do it"})
				t.Errorf("it lived: %v", err)
			})
			for range 6 * 60 {
				w.tick(time.Minute)
				if _, err := w.loop.Sweep(ctx); err != nil {
					t.Fatal(err)
				}
				dying(func() { _ = w.deliver(ctx) })
				w.queue = nil
			}
			v, _, err := w.loop.Get(ctx, "ana", runID)
			if err != nil || v.Status != c.end || len(starts) < 2 || len(starts) > 5 {
				t.Fatalf("%v, started %d times, %+v", err, len(starts), v)
			}
			if v.Status == run.Failed &&
				(v.ErrorReason != "too_many_attempts" || !strings.Contains(v.Summary, "given up")) {
				t.Errorf("it ended as %s: %s", v.ErrorReason, v.Summary)
			}
			for i := 2; i < len(starts); i++ {
				if starts[i].Sub(starts[i-1]) < starts[i-1].Sub(starts[i-2]) {
					t.Errorf("started at %v", starts)
				}
			}
		})
	}
}

// TestAttemptsOfKillingTask has a task of a plan whose first step kills each process. The task fails, or observes the
// failure, and the session continues.
func TestAttemptsOfKillingTask(t *testing.T) {
	ctx := context.Background()
	for name, want := range map[string]plan.Status{"the model": plan.StatusAwaiting, "a tool": plan.StatusCompleted} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			v, ap := proposed(t, w)
			if _, err := w.loop.Resolve(ctx, approval.Resolution{UID: "ana", ApprovalID: ap.ID,
				Decision: run.ApproveEdited, ArgsHash: ap.ArgsHash, EditedArgs: json.RawMessage(
					`{"tasks":[{"title":"Look","goal":"It is seen.","tools":["lookup"]}]}`)}); err != nil {
				t.Fatal(err)
			}
			starts := 0
			dies := func() {
				if starts++; starts <= run.MaxAttempts {
					runtime.Goexit()
				}
			}
			if name == "the model" {
				w.loop.Model = deadly{w.model, dies}
				w.model.Then(turn(t, granted))
			} else {
				d := breaking(w, dies)
				w.loop.Tools["lookup"] = d
				w.model.Then(turn(t, `call lookup {"reasoning":"To see.","word":"ten"}`),
					turn(t, `call reflect {"is_task_complete":true,"reflection":"Seen."}`))
			}
			for range 6 * 60 {
				dying(func() { _ = w.deliver(ctx) })
				w.queue = nil
				w.tick(time.Minute)
				if _, err := w.loop.Sweep(ctx); err != nil {
					t.Fatal(err)
				}
			}
			v, _, err := w.loop.Get(ctx, "ana", v.RunID)
			if err != nil || v.PlanState().Plan.Status() != want || starts < run.MaxAttempts {
				t.Errorf("%v, started %d times: %s, %+v", err, starts, v.PlanState().Plan.Status(), v)
			}
		})
	}
}

// deadlyReads returns a store that calls do when an older part of a run's log is read. do ends the process.
func deadlyReads(st store.Store, do func()) *faulty.Store {
	return faulty.Wrap(st, faulty.Of(func(c *faulty.Call) bool {
		return c.Method == faulty.Get && strings.Contains(c.Paths[0], "/events/")
	}, faulty.Before(func(*faulty.Call) { do() })))
}

// TestAttemptsOfKillingLoad has a run that kills each process that loads it, before anything can be claimed, and a
// sweep every minute for six hours. The run is tried a limited number of times, at growing intervals, and then
// quarantined and logged.
func TestAttemptsOfKillingLoad(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		ctx, w := context.Background(), open(t)
		var logs bytes.Buffer
		runID := w.late()
		other := w.process()
		other.Log = slog.New(slog.NewTextHandler(&logs, nil))
		var starts []time.Time
		other.Store = deadlyReads(w.store, func() { starts = append(starts, w.clock()); runtime.Goexit() })
		for range 6 * 60 {
			w.tick(time.Minute)
			if _, err := w.loop.Sweep(ctx); err != nil {
				t.Fatal(err)
			}
			for _, id := range w.queue {
				dying(func() { _, _ = other.Advance(ctx, id, nil) })
			}
			w.queue = nil
		}
		if len(starts) < 5 || len(starts) > 8 { // attempts are not counted until the run is late
			t.Errorf("started %d times: %v", len(starts), starts)
		}
		if d := w.document(runID); !document.RunFieldsOf(d).Quarantined ||
			strings.Count(logs.String(), "counter=run_aside") != 1 {
			t.Errorf("%v %s", d.Fields, &logs)
		}
		if v, err := w.loop.Advance(ctx, runID, nil); err != nil || v.Status != run.Completed || len(w.effects) != 1 {
			t.Errorf("asked for by one that can read it: %v %+v", err, v)
		}
	})
}

// TestAttemptsOfKillingRun restarts a local server with the runs of its earlier process. One of them kills the server
// each time the run is read. After a few restarts the server lives.
func TestAttemptsOfKillingRun(t *testing.T) {
	ctx, w := context.Background(), newEnv(t)
	runID, starts, lived := w.late(), 0, false
	other := w.process()
	other.Store = deadlyReads(w.store, runtime.Goexit)
	for ; !lived && starts < 20; starts++ {
		w.tick(20 * time.Minute)
		dying(func() {
			if _, err := other.Reclaim(ctx); err != nil {
				t.Error(err)
			}
			lived = true
		})
	}
	if d := w.document(runID); !lived || starts != 6 || !document.RunFieldsOf(d).Quarantined {
		t.Errorf("lives: %t, after %d starts, %v", lived, starts, d.Fields)
	}
}

// late makes a run whose mail was approved and whose resume was lost, with an older part of its log.
func (w *env) late() (runID string) {
	w.t.Helper()
	ctx := context.Background()
	w.loop.Model = &asked{tool: "send"}
	v, err := w.loop.Start(ctx,
		loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "tell bob " + strings.Repeat("everything ", 40<<10)})
	if err == nil {
		_, err = w.loop.Resolve(ctx,
			approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(v.RunID, 1), Decision: run.ApproveOnce})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.queue = nil
	return v.RunID
}

// TestAttemptsDuringQueueOutage publishes a run for six hours and delivers nothing. When the queue works again, the run
// continues.
func TestAttemptsDuringQueueOutage(t *testing.T) {
	realpart.Unraced(t)
	ctx, w := context.Background(), newEnv(t)
	runID := w.late()
	for range 6 * 60 {
		w.tick(time.Minute)
		if _, err := w.loop.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.deliver(ctx); err != nil { // all of them
		t.Fatal(err)
	}
	if v, _, err := w.loop.Get(ctx, "ana", runID); err != nil || v.Status != run.Completed || len(w.effects) != 1 {
		t.Errorf("%v %+v; want v.Status %v, len(w.effects) 1", err, v, run.Completed)
	}
}

// TestPanicAfterApproval lets functions of a tool panic that are called at the user's decision and before the approved
// call runs. Nothing is done, and the process lives.
func TestPanicAfterApproval(t *testing.T) {
	ctx := context.Background()
	w := newEnv(t)
	d := w.sendDef("send")
	d.Revise = func(sendArgs, sendArgs) sendArgs { panic("CANARY") }
	w.loop.Tools["send"] = tool.Define(d)
	w.model.Then(script.Turn{Calls: []script.Call{{Name: "send", Args: args([]string{"bob@x.org"}, "ten")}}},
		script.Turn{Text: "It was not sent."})
	v := start(t, w, "tell bob")
	edit := approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(v.RunID, 1), Decision: run.ApproveEdited,
		EditedArgs: args([]string{"bob@x.org"}, "eleven")}
	if _, err := w.loop.Resolve(ctx, edit); !tool.IsPanic(err) || fault.As(err).Code != "tool_panicked" {
		t.Errorf("the edit is answered %v", err)
	}
	approve(t, w, v, 1)
	w.account = func() (tool.Place, error) { panic("CANARY") }
	deliver(t, w)
	v, _, err := w.loop.Get(ctx, "ana", v.RunID)
	if err != nil || v.Status != run.Completed || v.Actions[0].ErrorReason != "tool_panicked" || len(w.effects) != 0 {
		t.Errorf("%v, %+v, done %d times", err, v, len(w.effects))
	}
}
