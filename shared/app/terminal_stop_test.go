package app_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// exists reports whether the file is in the host's home.
func (h *onHost) exists(name string) bool {
	_, err := os.Stat(filepath.Join(h.srv.Home, name))
	return err == nil
}

// alive returns the processes that this test's commands left on the host.
func (h *onHost) alive(mark string) (left []string) {
	for _, p := range h.srv.Processes() {
		if strings.Contains(p.Args, mark) {
			left = append(left, p.Args)
		}
	}
	return left
}

// moving has another process advance the run, and returns a function that waits for it.
func (h *onHost) moving() (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = h.Deliver(h.t.Context()) // what it did is checked afterwards
	}()
	return func() {
		h.t.Helper()
		select {
		case <-done:
		case <-time.After(await.Most):
			h.t.Fatal("the run is still moved")
		}
	}
}

// TestStop presses Stop at each moment of a run. Nothing runs or starts after it.
func TestStop(t *testing.T) {
	t.Parallel()
	t.Run("in a command", func(t *testing.T) {
		h := onTerminal(t, nil)
		h.SetModel((&commands{lines: []string{"echo begun; touch begun; sleep 4711; touch witness"}}).turn)
		asked := h.askOn("Do it.")
		h.resolve(asked.Approvals[0], "approve_once", nil)
		wait := h.moving()
		await.That(t, "the command begins", func() bool { return h.exists("begun") })
		h.stop(asked)
		await.That(t, "the command ends", func() bool { return len(h.alive("sleep 4711")) == 0 })
		wait()
		got := h.run(asked)
		if !cancelled(got) || h.exists("witness") || got.Actions[0].Status != "failed" ||
			!strings.Contains(string(got.Body), `"kind":"aborted"`) {
			t.Errorf("%s", got.Body)
		}
		if !strings.Contains(h.steps(got), ": begun") {
			t.Errorf("its output so far is not there: %s", h.steps(got))
		}
	})
	t.Run("in a command that takes no notice", func(t *testing.T) {
		h := onTerminal(t, nil)
		line := "trap '' INT TERM; touch begun; while :; do sleep 0.2; done"
		h.SetModel((&commands{lines: []string{line}}).turn)
		asked := h.askOn("Do it.")
		h.resolve(asked.Approvals[0], "approve_once", nil)
		wait := h.moving()
		await.That(t, "the command begins", func() bool { return h.exists("begun") })
		h.stop(asked)
		await.That(t, "the command ends", func() bool { return len(h.alive("sleep 0.2")) == 0 })
		wait()
		if got := h.run(asked); !cancelled(got) {
			t.Errorf("%s", got.Body)
		}
	})
	t.Run("while a card waits", func(t *testing.T) {
		h := onTerminal(t, nil)
		h.SetModel((&commands{lines: []string{"touch witness"}}).turn)
		asked := h.askOn("Do it.")
		h.stop(asked)
		if got := h.resolve(asked.Approvals[0], "approve_once", nil); got.HTTP != http.StatusConflict {
			t.Errorf("a yes after the stop: %d %s", got.HTTP, got.Body)
		}
		if got := h.run(asked); !cancelled(got) || h.exists("witness") {
			t.Errorf("%s", got.Body)
		}
	})
	t.Run("after the yes, before it begins", func(t *testing.T) {
		h := onTerminal(t, nil)
		h.SetModel((&commands{lines: []string{"touch witness"}}).turn)
		asked := h.askOn("Do it.")
		h.resolve(asked.Approvals[0], "approve_once", nil)
		h.stop(asked)
		if got := h.run(asked); !cancelled(got) || h.exists("witness") {
			t.Errorf("%s", got.Body)
		}
	})
	t.Run("in a call of the model", func(t *testing.T) {
		h := onTerminal(t, nil)
		release, called := make(chan struct{}), make(chan struct{})
		h.SetModel(func(fakegemini.Request) fakegemini.Turn {
			close(called)
			<-release
			call := fakegemini.Call{Name: "run_command", Args: testkit.Command("touch witness")}
			return fakegemini.Turn{Calls: []fakegemini.Call{call}}
		})
		var asked testkit.Answer
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			asked, _ = h.as("ana").AskOn(t.Context(), h.terminal, "", "Do it.", "Idempotency-Key", "stop")
		}()
		<-called
		var list struct{ Threads []struct{ ThreadID string } }
		if err := json.Unmarshal(h.call("GET", "/api/agent/threads", "").Body, &list); err != nil ||
			len(list.Threads) != 1 {
			t.Fatal(err, list)
		}
		run := strings.TrimSuffix(list.Threads[0].ThreadID, "-t")
		var view struct{ Messages []struct{ RunID string } }
		if err := json.Unmarshal(h.call("GET", "/api/agent/threads/"+run+"/messages", "").Body, &view); err != nil ||
			len(view.Messages) == 0 {
			t.Fatal(err, view)
		}
		h.stop(testkit.Answer{RunID: view.Messages[0].RunID})
		close(release)
		<-answered
		if got := h.run(testkit.Answer{RunID: view.Messages[0].RunID}); !cancelled(got) || h.exists("witness") {
			t.Errorf("%s (%s)", got.Body, asked.Body)
		}
	})
}

// cancelled reports whether the run ended because the user stopped it.
func cancelled(a testkit.Answer) bool { return a.Status == "failed" && a.ErrorReason == "cancelled" }

// stop cancels ana's run.
func (h *onHost) stop(a testkit.Answer) {
	h.t.Helper()
	if got := h.call("POST", "/api/agent/runs/"+a.RunID+"/cancel", ""); got.HTTP != http.StatusOK {
		h.t.Errorf("%d %s; want got.HTTP %v", got.HTTP, got.Body, http.StatusOK)
	}
	h.moving()()
}

// TestTerminalLongCommand has a command outlast the functions that advance its run. Each continues where the one before
// stopped, and the command starts once.
func TestTerminalLongCommand(t *testing.T) {
	t.Parallel()
	h := onTerminal(t, nil)
	args := testkit.Command("for i in 1 2 3 4 5 6; do echo line $i; echo x >> witness; sleep 2; done")
	args["timeoutSeconds"] = 60
	h.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		if len(r.Responses()) > 0 {
			return fakegemini.Turn{Text: string(r.Responses()[0].Response)}
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "run_command", Args: args}}}
	})
	asked := h.askOn("Do it.")
	h.resolve(asked.Approvals[0], "approve_once", nil)
	h.App.API.Budget = 14 * time.Second
	functions := 0
	var got testkit.Answer
	await.That(t, "the run ends", func() bool {
		functions++
		got = h.run(asked)
		return got.Status == "completed" || got.Status == "failed"
	})
	if h.witness() != strings.Repeat("x\n", 6) || got.Status != "completed" ||
		!strings.Contains(h.steps(got), "line 1\nline 2\nline 3\nline 4\nline 5\nline 6") {
		t.Errorf("after %d functions: %q %s", functions, h.witness(), got.Body)
	}
	out := h.call("GET", "/api/agent/runs/"+asked.RunID+"/output/"+got.Actions[0].ActionID, "")
	if text := strings.ReplaceAll(string(out.Body), "\r",
		""); text != "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\n" {
		t.Errorf("its output: %d %q", out.HTTP, out.Body)
	}
}

// A command is ended at its time limit. It has failed with a known outcome, and the model gets the output so far and
// continues.
func TestTerminalCommandTimeLimit(t *testing.T) {
	t.Parallel()
	h := onTerminal(t, nil)
	args := testkit.Command("echo begun; sleep 4713")
	args["timeoutSeconds"] = 2
	var told string
	h.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		if len(r.Responses()) > 0 {
			told = string(r.Responses()[0].Response)
			return fakegemini.Turn{Text: "It took too long."}
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "run_command", Args: args}}}
	})
	got := h.approve(h.askOn("Do it."))
	if got.Status != "completed" || got.Actions[0].ErrorReason != "timeout" ||
		got.Actions[0].ErrorCode != "ToolExecutionError" || !strings.Contains(told, "begun") ||
		!strings.Contains(string(got.Body), `"timedOut":true`) || len(h.alive("4713")) > 0 {
		t.Errorf("%q %v %s", told, h.alive("4713"), got.Body)
	}
}
