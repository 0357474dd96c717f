package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/fakedocker"
	"github.com/countersign-run/countersign/shared/testkit/podman"
	"github.com/countersign-run/countersign/shared/testkit/script"
	engines "github.com/countersign-run/countersign/shared/tools/container/docker"
	"github.com/countersign-run/countersign/shared/tools/docker"
)

// engine is the service on which a tool makes things, such as containers, that are removed after their run.
type engine struct {
	made  []string // run IDs
	tries int      // cleanups
	down  int      // the number of next cleanups that fail

	during func() // happens once, before something is made
	half   bool   // the effect is made in part, and the answer is lost
}

// withMaker gives the env's assistant a tool whose results must be cleaned up.
func withMaker(w *env) *engine {
	e := &engine{}
	d := w.sendDef("make")
	d.Execute = func(_ context.Context, c tool.Call, _ sendArgs) (sendResult, error) {
		if during := e.during; during != nil {
			e.during = nil
			during()
		}
		e.made = append(e.made, c.RunID)
		if e.half {
			return sendResult{}, tool.Ambiguous(errors.New("the connection was reset"))
		}
		return sendResult{ID: "made"}, nil
	}
	d.Reconcile = func(_ context.Context, c tool.Call, _ sendArgs) (tool.Verdict, sendResult, string, error) {
		if !e.half && slices.Contains(e.made, c.RunID) {
			return tool.Done, sendResult{ID: "made"}, "", nil
		}
		return tool.NotDone, sendResult{}, "", nil
	}
	d.Dispose = func(_ context.Context, c tool.Call) (removed int, err error) {
		if e.tries++; e.down > 0 {
			e.down--
			return 0, errors.New("the engine is down")
		}
		before := len(e.made)
		e.made = slices.DeleteFunc(e.made, func(id string) bool { return id == c.RunID })
		return before - len(e.made), nil
	}
	w.loop.Tools["make"] = tool.Define(d)
	return e
}

var tellBob = map[string]any{"to": []string{"bob@x.org"}, "text": "ten"}

var toMake = script.Turn{Calls: []script.Call{{Name: "make", Args: tellBob}}}

// makes starts a run that makes something, and advances it until it waits or ends.
func makes(t *testing.T, w *env, then ...script.Turn) (runID string) {
	t.Helper()
	w.model.Then(append([]script.Turn{toMake}, then...)...)
	v := start(t, w, "go")
	approve(t, w, v, 1)
	moveOn(t, w)
	return v.RunID
}

func moveOn(t *testing.T, w *env) {
	t.Helper()
	if err := w.deliver(t.Context()); err != nil && !unit.Held(err) {
		t.Fatal(err)
	}
}

func sweep(t *testing.T, w *env, after time.Duration) {
	t.Helper()
	w.tick(after)
	if _, err := w.loop.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	moveOn(t, w)
}

// cleaned returns the number of the run's recorded cleanups in its events and in its audit, and the time of the next
// one.
func cleaned(t *testing.T, w *env, runID string) (events, audited int, due time.Time) {
	t.Helper()
	_, all, err := w.loop.Get(t.Context(), "ana", runID)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Type == run.RunCleaned {
			events++
		}
	}
	chain, _, err := w.rec.Chain(t.Context(), runID)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range chain {
		if e.Kind == "cleaned_up" {
			audited++
		}
	}
	return events, audited, document.RunFieldsOf(w.document(runID)).Due
}

func isClean(t *testing.T, w *env, e *engine, runID string) {
	t.Helper()
	events, audited, due := cleaned(t, w, runID)
	if len(e.made) != 0 || events != 1 || audited != 1 || !due.IsZero() {
		t.Errorf("left %v, in the events %d times, in the audit %d times, due %v", e.made, events, audited, due)
	}
}

// TestCleanupAfterALateCall lets a process that has lost its run make something after another process has ended and
// cleaned up the run. The process then records an outcome, or it leaves the call to the other process, because the
// answer was lost and its lease has ended.
func TestCleanupAfterALateCall(t *testing.T) {
	for _, half := range []bool{false, true} {
		w := newEnv(t)
		e := withMaker(w)
		w.model.Then(toMake, script.Turn{Text: "Done."})
		v := start(t, w, "go")
		approve(t, w, v, 1)
		e.during = func() { sweep(t, w, time.Hour); e.half = half }
		moveOn(t, w)
		if isClean(t, w, e, v.RunID); e.tries != 2 {
			t.Errorf("with half of the effect: %v: %d removals; want 2", half, e.tries)
		}
	}
}

// TestCleanupAfterEachEnd ends runs in each way.
func TestCleanupAfterEachEnd(t *testing.T) {
	asks := script.Turn{Calls: []script.Call{{Name: "send", Args: tellBob}}}
	for name, c := range map[string]struct {
		then []script.Turn
		end  func(t *testing.T, w *env, runID string)
	}{
		"done":   {[]script.Turn{{Text: "Done."}}, func(*testing.T, *env, string) {}},
		"failed": {[]script.Turn{{Err: errors.New("no")}}, func(*testing.T, *env, string) {}},
		"cancelled": {[]script.Turn{asks}, func(t *testing.T, w *env, runID string) {
			if _, err := w.loop.Cancel(t.Context(), "ana", runID); err != nil {
				t.Fatal(err)
			}
		}},
		"rejected": {[]script.Turn{asks}, func(t *testing.T, w *env, runID string) {
			if _, err := w.loop.Resolve(t.Context(), approval.Resolution{UID: "ana",
				ApprovalID: run.ApprovalID(runID, 2), Decision: run.Reject}); err != nil {
				t.Fatal(err)
			}
		}},
		"deadline": {[]script.Turn{asks}, func(t *testing.T, w *env, _ string) { sweep(t, w, 73*time.Hour) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			e := withMaker(w)
			id := makes(t, w, c.then...)
			c.end(t, w, id)
			moveOn(t, w)
			isClean(t, w, e, id)
			sweep(t, w, time.Hour)
			if e.tries != 1 {
				t.Errorf("cleaned up %d times", e.tries)
			}
		})
	}
}

// TestRetriesOfCleanup lets the engine fail, for a time and for good.
func TestRetriesOfCleanup(t *testing.T) {
	w := newEnv(t)
	e := withMaker(w)
	e.down = 2
	id := makes(t, w, script.Turn{Text: "Done."})
	if all, err := w.rec.Unended(t.Context(), "ana"); err != nil || len(all) != 1 || all[0].RunID != id {
		t.Errorf("whoever deletes the user waits for %+v, %v", all, err)
	}
	for i, pause := range []time.Duration{time.Minute, 2 * time.Minute} {
		sweep(t, w, pause-2*time.Second)
		if e.tries != i+1 {
			t.Errorf("tried %d times within the pause", e.tries)
		}
		sweep(t, w, 4*time.Second)
	}
	isClean(t, w, e, id)
	if all, err := w.rec.Unended(t.Context(), "ana"); err != nil || len(all) != 0 {
		t.Errorf("it is clean, and whoever deletes the user waits for %+v, %v", all, err)
	}

	e.down, e.tries = 1000, 0
	id = makes(t, w, script.Turn{Text: "Done."})
	for range 30 {
		sweep(t, w, time.Hour)
	}
	events, audited, due := cleaned(t, w, id)
	if e.tries != 12 || events != 1 || audited != 1 || !due.IsZero() {
		t.Errorf("tried %d times, in the events %d times, in the audit %d times, due %v", e.tries, events, audited, due)
	}
}

// TestCleanupBeforeDeletion deletes a conversation while the engine is down.
func TestCleanupBeforeDeletion(t *testing.T) {
	w := newEnv(t)
	e := withMaker(w)
	e.down = 1
	id := makes(t, w, script.Turn{Text: "Done."})
	w.deletedLater(t, id, func() {
		sweep(t, w, 2*time.Minute)
		if len(e.made) != 0 {
			t.Errorf("left %v", e.made)
		}
	})
}

// deletedLater deletes the conversation of a run that has ended and is still due. No user sees it, and it is
// gone after happen.
func (w *env) deletedLater(t *testing.T, runID string, happen func()) {
	t.Helper()
	thread := document.RunFieldsOf(w.document(runID)).ThreadID
	if gone, err := w.rec.DeleteThread(t.Context(), "ana", thread); err != nil || gone {
		t.Fatalf("deleted with %v, gone %v", err, gone)
	}
	if d, err := w.rec.FinishDeletions(t.Context()); err != nil || d.Gone != 0 || !w.document(runID).Exists() {
		t.Errorf("it is deleted before: %+v, %v", d, err)
	}
	if _, _, err := w.loop.Get(t.Context(), "ana", runID); !fault.Is(err, fault.Auth, fault.CodeNotFound) {
		t.Errorf("its user still sees it: %v", err)
	}
	happen()
	w.tick(time.Hour)
	if d, err := w.rec.FinishDeletions(t.Context()); err != nil || d.Gone != 1 || w.document(runID).Exists() {
		t.Errorf("it stays: %+v, %v", d, err)
	}
}

// TestCleanupWithoutTool has a process without the tool reach the run first.
func TestCleanupWithoutTool(t *testing.T) {
	w := newEnv(t)
	e := withMaker(w)
	has := w.loop.Tools
	id := makes(t, w, script.Turn{Calls: []script.Call{{Name: "send", Args: tellBob}}})
	w.loop.Tools = w.process().Tools
	if _, err := w.loop.Cancel(t.Context(), "ana", id); err != nil {
		t.Fatal(err)
	}
	moveOn(t, w)
	if len(e.made) != 1 {
		t.Fatal("nothing is left to remove")
	}
	w.loop.Tools = has
	sweep(t, w, time.Minute+time.Second)
	isClean(t, w, e, id)
}

// TestCleanupKilledAtEveryCommit kills the process before and after each commit of a run that leaves something.
func TestCleanupKilledAtEveryCommit(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; n <= 8; n++ {
			t.Run(fmt.Sprintf("after=%v/%d", after, n), func(t *testing.T) {
				w := newEnv(t)
				e := withMaker(w)
				killedAt(t, w, &asked{tool: "make"}, n, after)
				isClean(t, w, e, run.KeyedRunID("ana", "k1"))
			})
		}
	}
}

// killedAt lets the process die at a commit of a run that makes something, and others take up the run.
func killedAt(t *testing.T, w *env, m *asked, n int, after bool) {
	t.Helper()
	w.loop.Store, w.loop.Model = mortal(w.store, n, after), m
	life := func() error {
		_, err := w.loop.Start(t.Context(),
			loop.StartRequest{UID: "ana", Key: "k1", BodyHash: "h"}, loop.Prompt{Text: "go"})
		if open := w.open("ana"); err == nil && len(open) > 0 {
			approve(t, w, &run.View{RunID: run.KeyedRunID("ana", "k1")}, 1)
		}
		return errors.Join(err, w.deliver(t.Context()))
	}
	died, err := mortally(life)
	if err != nil || !died && n <= 6 {
		t.Fatalf("died %v, %v", died, err)
	}
	for range 4 {
		sweep(t, w, 3*time.Minute)
		if err := life(); err != nil && !unit.Held(err) && !fault.Is(err, fault.Policy, fault.CodeBusy) {
			t.Fatal(err)
		}
	}
}

// TestCleanupOfContainersKilled kills the process in the same way, in runs that create containers, on a simulated
// engine and on a real one.
func TestCleanupOfContainersKilled(t *testing.T) {
	const image = "localhost/busybox:1"
	pretends := fakedocker.Open(t, fakedocker.Options{Images: []string{image}})
	t.Run("fakedocker", func(t *testing.T) {
		leaveNoContainer(t, pretends.Host, image, func() int { return len(pretends.Containers()) })
		if pretends.Started() < 16 || pretends.Removed() != pretends.Started() {
			t.Errorf("%d containers were started, and %d removed", pretends.Started(), pretends.Removed())
		}
	})
	t.Run("podman", func(t *testing.T) {
		host := podman.Start(t)
		leaveNoContainer(t, host.Host, image, host.Containers)
	})
}

func leaveNoContainer(t *testing.T, host, image string, left func() int) {
	e, err := engines.Open(engines.Config{Host: host})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() }) // it never fails
	create := docker.New(docker.Options{Engine: e, Images: []string{image}})[docker.Create]
	for _, after := range []bool{false, true} {
		for n := 1; n <= 8; n++ {
			w := newEnv(t)
			w.loop.Tools[docker.Create] = create
			w.assistant().Limits.ToolTimeout = time.Minute
			killedAt(t, w, &asked{tool: docker.Create,
				args: fmt.Sprintf(`{"options":{"image":%q,"memory":64}}`, image)}, n, after)
			events, audited, due := cleaned(t, w, run.KeyedRunID("ana", "k1"))
			if there := left(); there != 0 || events != 1 || audited != 1 || !due.IsZero() {
				t.Errorf("killed at commit %d (after it: %v): %d are left, in the events %d times, in the audit %d "+
					"times, due %v", n, after, there, events, audited, due)
			}
		}
	}
}
