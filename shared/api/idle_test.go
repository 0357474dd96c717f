package api

import (
	"context"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// idle is an API over a store that counts its reads and a tool that counts its previews. Its handlers are called
// without HTTP, so hours can pass in a synctest bubble.
type idle struct {
	*API
	t        *testing.T
	model    *script.Model
	store    *faulty.Counter
	previews atomic.Int64
}

type noQueue struct{}

func (noQueue) Resume(context.Context, queue.Message) error { return nil }
func (noQueue) Close() error                                { return nil }

type letter struct {
	Text string `json:"text"`
}

func newIdle(t *testing.T) *idle {
	w := &idle{t: t, model: script.New(), store: faulty.Count(memory.New(time.Now))}
	mail := tool.Define(tool.Def[letter, struct{}]{Name: "mail", Description: "Sends a mail.", SideEffect: true,
		Preview: func(in letter) tool.Preview {
			w.previews.Add(1)
			return tool.Preview{Title: "Mail", Fields: []tool.Field{{Label: "Text", Value: in.Text}}}
		},
		Execute: func(context.Context, tool.Call, letter) (struct{}, error) { return struct{}{}, nil }})
	assistant := &registry.Agent{Name: run.Assistant, Description: "Sends mail.", OnReject: registry.RejectCompletes,
		Instructions: registry.WithRules(registry.Text("A test.")), History: registry.HistoryWords,
		Limits: registry.Limits{ModelCalls: 3, ApprovalTTL: 20 * time.Hour, Deadline: 24 * time.Hour,
			ModelTimeout: 20 * time.Second, ToolTimeout: 10 * time.Second, MaxOpen: 9, MaxPerDay: 60}}
	look := tool.Define(tool.Def[letter, letter]{Name: "look", Description: "Looks, for three seconds.",
		Preview: func(in letter) tool.Preview { return tool.Preview{Title: "Look"} },
		Execute: func(_ context.Context, _ tool.Call, in letter) (letter, error) {
			time.Sleep(3 * time.Second)
			return in, nil
		}})
	log := slog.New(slog.DiscardHandler)
	w.API = &API{Records: &records.Records{Store: w.store, Now: time.Now}, Log: log, Budget: time.Hour,
		Loop: loop.New(unit.Env{Store: w.store, Queue: noQueue{}, Model: w.model, Tools: tool.NewSet(mail, look),
			Log: log, Agents: registry.Set{run.Assistant: assistant}})}
	return w
}

// awaits starts a run that requests the e-mails.
func (w *idle) awaits(texts ...string) *run.View {
	w.t.Helper()
	turn := script.Turn{}
	for _, text := range texts {
		turn.Calls = append(turn.Calls, script.Call{Name: "mail", Args: letter{text}})
	}
	w.model.Then(turn)
	v, err := w.Loop.Start(w.t.Context(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "mail"})
	if err != nil || v.Status != run.Awaiting {
		w.t.Fatal(v, err)
	}
	return v
}

// request is a request of ana's for the run. The recorder receives the response.
func (w *idle) request(ctx context.Context, method, runID string, header ...string) (*request,
	*httptest.ResponseRecorder) {
	req := httptest.NewRequestWithContext(ctx, method, "/", nil)
	req.SetPathValue("runId", runID)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	return &request{Request: req, w: rec, uid: "ana", api: w.API}, rec
}

// TestIdleStreamCost checks that streams of waiting runs read nothing and make no preview, however long they
// wait, and that they send new events at once.
func TestIdleStreamCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newIdle(t)
		v := w.awaits(strings.Repeat("a large mail, ", 10<<10), strings.Repeat("and another, ", 10<<10))
		var streams sync.WaitGroup
		var outs [10]*httptest.ResponseRecorder
		for i := range outs {
			var r *request
			r, outs[i] = w.request(t.Context(), "GET", v.RunID)
			streams.Go(func() {
				if _, err := getEvents(r); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		w.store.Take()
		w.previews.Store(0)
		time.Sleep(50 * time.Minute)
		synctest.Wait()
		if got := w.store.Take(); got != (faulty.Counts{}) || w.previews.Load() != 0 {
			t.Errorf("10 idle streams cost %+v and %d previews", got, w.previews.Load())
		}
		if _, err := w.Loop.Cancel(t.Context(), "ana", v.RunID); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		streams.Wait()
		for i, out := range outs {
			if text := out.Body.String(); time.Since(before) != 0 || !strings.Contains(text, "run.ended") {
				t.Fatalf("stream %d, %v after the end: …%s", i, time.Since(before), text[max(0, len(text)-300):])
			}
		}
	})
}

// TestWaitForRun checks when a wait ends: when the run rests, or else when the client's preference or the function's
// budget is over.
func TestWaitForRun(t *testing.T) {
	for name, c := range map[string]struct {
		prefer  string
		budget  time.Duration
		resumed time.Duration // when the run continues; 0 means never
		took    time.Duration
		status  run.Status
		applied string
	}{
		"none": {"", time.Minute, time.Second, 0, run.Executing, ""},
		"until the end": {"wait=30", time.Minute, 7 * time.Second, 7 * time.Second, run.Completed,
			"wait=30"},
		"as it stands":             {"wait=30", time.Minute, 0, 30 * time.Second, run.Executing, "wait=30"},
		"zero":                     {"wait=0", time.Minute, time.Second, 0, run.Executing, "wait=0"},
		"negative":                 {"wait=-7", time.Minute, time.Second, 0, run.Executing, "wait=0"},
		"too long":                 {"wait=3600", time.Hour, 0, 50 * time.Second, run.Executing, "wait=50"},
		"longer than the function": {"wait=50", 30 * time.Second, 0, 28 * time.Second, run.Executing, "wait=28"},
		"other preferences": {`x="a, wait=1", WAIT = "9"; z, wait=2`, time.Minute, 0, 9 * time.Second,
			run.Executing, "wait=9"},
		"unreadable": {"wait=soon", time.Minute, time.Second, 0, run.Executing, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newIdle(t)
				w.Budget = c.budget
				v := w.awaits("hi")
				w.model.Then(script.Turn{Text: "It is sent."})
				r, rec := w.request(t.Context(), "POST", v.RunID, "Prefer", c.prefer)
				p := r.patience(maxWait)
				v = w.approve(v, 0)
				if c.resumed > 0 {
					w.resumeAfter(c.resumed, v.RunID)
				}
				began := time.Now()
				w.store.Take()
				v = r.settled(t.Context(), v, p)
				if took := time.Since(began); took != c.took || v.Status != c.status ||
					rec.Header().Get("Preference-Applied") != c.applied {
					t.Errorf("after %v: %s, applied %q", took, v.Status, rec.Header().Get("Preference-Applied"))
				}
				time.Sleep(time.Minute) // let deferred work finish
			})
		})
	}
}

// resumeAfter advances the run after d.
func (w *idle) resumeAfter(d time.Duration, runID string) {
	time.AfterFunc(d, func() {
		if _, err := w.Loop.Advance(context.Background(), runID, nil); err != nil {
			w.t.Error(err)
		}
	})
}

func (w *idle) approve(v *run.View, action int) *run.View {
	w.t.Helper()
	v, err := w.Loop.Resolve(w.t.Context(), approval.Resolution{UID: "ana", ApprovalID: v.Actions[action].ApprovalID,
		Decision: run.ApproveOnce})
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// TestWaitForNextApproval checks that a wait ends when the run waits for the user again, even after one of its calls
// was approved.
func TestWaitForNextApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newIdle(t)
		v := w.awaits("one", "two")
		r, _ := w.request(t.Context(), "POST", v.RunID, "Prefer", "wait=40")
		p := r.patience(maxWait)
		v = w.approve(v, 0)
		w.resumeAfter(5*time.Second, v.RunID)
		began := time.Now()
		v = r.settled(t.Context(), v, p)
		if took := time.Since(began); took != 5*time.Second || v.Status != run.Awaiting ||
			v.Actions[0].Status != run.ActionCompleted {
			t.Errorf("after %v: %s, %+v", took, v.Status, v.Actions[0])
		}
	})
}

// TestApprovalsInRunAnswers checks that every answer with a run lists the waiting approvals, even while another
// action of the run is in progress, and that an ended run lists none.
func TestApprovalsInRunAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newIdle(t)
		post := func() *request {
			r, _ := w.request(t.Context(), "POST", "", "Prefer", "wait=0", "Content-Type", "application/json",
				"Idempotency-Key", "one")
			r.Body = io.NopCloser(strings.NewReader(`{"prompt":"mail"}`))
			return r
		}
		w.model.Then(script.Turn{Calls: []script.Call{{Name: "mail", Args: letter{"one"}},
			{Name: "mail", Args: letter{"two"}}}})
		started, err := postRun(post())
		if err != nil {
			t.Fatal(err)
		}
		v := started.(runAnswer).View
		w.approve(v, 0)
		doors := map[string]func() (any, error){
			"POST /run":    func() (any, error) { return postRun(post()) },
			"GET /runs/ID": func() (any, error) { r, _ := w.request(t.Context(), "GET", v.RunID); return getRun(r) },
		}
		for door, answer := range doors {
			got, err := answer()
			later, accepted := got.(accepted)
			if accepted {
				got = later.body
			}
			a, ok := got.(runAnswer)
			if err != nil || !ok || accepted != (door == "POST /run") || len(a.Approvals) != 1 ||
				a.Approvals[0].ApprovalID != v.Actions[1].ApprovalID || a.Approvals[0].ArgsHash == "" ||
				len(a.Approvals[0].Preview.Fields) == 0 {
				t.Errorf("%s: %v, %+v", door, err, a.Approvals)
			}
		}
		r, _ := w.request(t.Context(), "POST", v.RunID)
		got, err := postCancel(r)
		if a, ok := got.(runAnswer); err != nil || !ok || a.Approvals != nil {
			t.Errorf("POST /cancel: %v, %+v", err, got)
		}
	})
}

// TestRunHandedOn checks that POST /run hands its run to another process when the client's time is up, and answers
// 202 with a body as in seed 000.
func TestRunHandedOn(t *testing.T) {
	for prefer, want := range map[string]struct {
		took   time.Duration
		status run.Status
	}{"": {6 * time.Second, run.Completed}, "wait=50": {6 * time.Second, run.Completed},
		"wait=0": {0, run.Awaiting}, "wait=1": {3 * time.Second, run.Awaiting}} {
		synctest.Test(t, func(t *testing.T) {
			w := newIdle(t)
			w.model.Then(script.Turn{Calls: []script.Call{{Name: "look", Args: letter{"a"}},
				{Name: "look", Args: letter{"b"}}}},
				script.Turn{Text: "Seen."})
			r, rec := w.request(t.Context(), "POST", "", "Prefer", prefer, "Content-Type", "application/json")
			r.Body = io.NopCloser(strings.NewReader(`{"prompt":"look"}`))
			began := time.Now()
			got, err := postRun(r)
			if err != nil {
				t.Fatal(err)
			}
			goesOn, later := got.(accepted)
			if later {
				got = goesOn.body
			}
			v := got.(runAnswer)
			if later != (want.status == run.Awaiting) || later != (rec.Header().Get("Location") != "") ||
				// the second action is in progress, or has not started
				later && (len(v.Actions) > 1 || v.Approvals != nil) {
				t.Errorf("%s: it goes on: %v, at %q, with %d actions", prefer, later, rec.Header().Get("Location"),
					len(v.Actions))
			}
			if took := time.Since(began); took != want.took || v.Status != want.status ||
				rec.Header().Get("Preference-Applied") != prefer {
				t.Errorf("%s: after %v: %s, applied %q", prefer, took, v.Status, rec.Header().Get("Preference-Applied"))
			}
			if _, err := w.Loop.Advance(t.Context(), v.RunID, nil); err != nil {
				t.Errorf("%s: it was not handed over: %v", prefer, err)
			}
		})
	}
}

// TestWaitOfDisconnectedClient checks that a wait ends when the client disconnects.
func TestWaitOfDisconnectedClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newIdle(t)
		v := w.awaits("one")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		r, _ := w.request(ctx, "POST", v.RunID, "Prefer", "wait=40")
		p := r.patience(maxWait)
		v = w.approve(v, 0)
		began := time.Now()
		working, done := r.working()
		defer done()
		if r.settled(working, v, p); time.Since(began) != 3*time.Second {
			t.Errorf("waited for %v", time.Since(began))
		}
	})
}

// TestStreamsPerUser checks that one user's streams and waits leave room for other users.
func TestStreamsPerUser(t *testing.T) {
	var h holders
	var leave []func()
	for i := range 4 {
		l, ok := h.take("ana", 3)
		if ok != (i < 3) {
			t.Fatalf("the request %d of a user who may have 3: %v", i+1, ok)
		}
		leave = append(leave, l)
	}
	if l, ok := h.take("ben", 3); !ok {
		t.Error("another user has no room")
	} else {
		l()
	}
	leave[0]()
	if _, ok := h.take("ana", 3); !ok {
		t.Error("no room after one has gone")
	}
	for concurrency, most := range map[int]int{0: 250, 80: 20, 40: 10, 3: 1, 1: 1} {
		if got := (&API{Concurrency: concurrency}).heldMost(); got != most {
			t.Errorf("of %d one user may hold %d, want %d", concurrency, got, most)
		}
	}
}

// FuzzPrefer checks that every Prefer header yields a wait within the limits, or none.
func FuzzPrefer(f *testing.F) {
	for _, s := range []string{"wait=10", "", "wait", "wait=", "wait=-1", "wait=51", `wait="5"`,
		"respond-async, wait=3",
		`a="\",wait=9", wait=4`, "wait=99999999999999999999", "wait=1.5", "WAIT=7;x=1", "wait=١", `wait="`, "wait=+5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, _ := (&idle{API: &API{Budget: time.Minute}}).request(t.Context(), "POST", "x", "Prefer", s)
		wait, ok := preferredWait(r.Header, maxWait)
		if wait < 0 || wait > maxWait*time.Second || wait%time.Second != 0 || !ok && wait != 0 {
			t.Fatalf("%q is a wait of %v, %v", s, wait, ok)
		}
	})
}
