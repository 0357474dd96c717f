package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// proposesList is a model that proposes one list of commands, and then says that it is done.
func (h *onHost) proposesList(lines ...string) *[]string {
	h.t.Helper()
	read := new([]string)
	h.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		for _, c := range r.Contents {
			for _, p := range c.Parts {
				if p.FunctionResponse != nil {
					*read = append(*read, string(p.FunctionResponse.Response))
				}
			}
		}
		if len(r.Responses()) > 0 {
			return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "task_complete",
				Args: map[string]string{"summary": "All is well."}}}}
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "run_commands", Args: testkit.Commands(lines...)}}}
	})
	return read
}

// listed returns the commands of the run's list, each with its kind and exit code.
func listed(t *testing.T, a testkit.Answer) (all []string) {
	t.Helper()
	var v struct {
		Actions []struct {
			Step struct {
				Commands []struct {
					Kind, Command string
					ExitCode      *int
				}
			}
		}
	}
	if err := json.Unmarshal(a.Body, &v); err != nil {
		t.Fatal(err)
	}
	for _, act := range v.Actions {
		for _, c := range act.Step.Commands {
			exit := "-"
			if c.ExitCode != nil {
				exit = string(rune('0' + *c.ExitCode))
			}
			all = append(all, c.Kind+" "+exit+" "+c.Command)
		}
	}
	return all
}

// TestTerminalListApproval runs three commands by one decision. The directory and the variables of each carry over, and
// the terminal's next command begins where the list ended.
func TestTerminalListApproval(t *testing.T) {
	h := onTerminal(t, nil)
	lines := []string{"mkdir sub && cd sub", "export WORD=one", "echo $WORD in ${PWD##*/} >> ../witness"}
	read := h.proposesList(lines...)
	asked := h.askOn("Prepare it.")
	if len(asked.Approvals) != 1 || asked.Approvals[0].Tool != "run_commands" {
		t.Fatalf("%s; want len(asked.Approvals) 1, asked.Approvals[0].Tool “run_commands”", asked.Body)
	}
	for i, line := range lines {
		if label := `"Command ` + string(rune('1'+i)) + `"`; !strings.Contains(string(asked.Body), label) {
			t.Errorf("the card does not show %s: %s", line, asked.Body)
		}
	}
	if strings.Contains(string(asked.Body), "approve_and_always_allow") {
		t.Errorf("a list can be allowed always: %s", asked.Body)
	}
	if h.witness() != "" {
		t.Fatal("it ran before the yes")
	}
	got := h.approve(asked)
	if got.Status != "completed" || h.witness() != "one in sub\n" {
		t.Fatalf("%q %s; want got.Status “completed”, h.witness() %q", h.witness(), got.Body, "one in sub\n")
	}
	want := []string{"command 0 " + lines[0], "command 0 " + lines[1], "command 0 " + lines[2]}
	if all := listed(t, got); !slices.Equal(all, want) {
		t.Errorf("%q; want %q", all, want)
	}
	if len(*read) != 1 || strings.Count((*read)[0], `"exitCode":0`) != 3 {
		t.Errorf("the model read %q", *read)
	}
	h.SetModel((&commands{lines: []string{"pwd > ~/where"}}).turn)
	h.approve(h.askOn("Where?"))
	if where, err := os.ReadFile(filepath.Join(h.srv.Home, "where")); err != nil ||
		string(where) != h.srv.Home+"/sub\n" {
		t.Errorf("%v %q", err, where)
	}
}

// TestTerminalListFailure has the second of three commands fail: the third is recorded as not run.
func TestTerminalListFailure(t *testing.T) {
	h := onTerminal(t, nil)
	lines := []string{"echo one >> witness", "cd / && (exit 3)", "echo three >> ~/witness"}
	read := h.proposesList(lines...)
	got := h.approve(h.askOn("Do it."))
	if got.Status != "completed" || h.witness() != "one\n" {
		t.Fatalf("%q %s; want got.Status “completed”, h.witness() %q", h.witness(), got.Body, "one\n")
	}
	want := []string{"command 0 " + lines[0], "error 3 " + lines[1], "aborted - " + lines[2]}
	if all := listed(t, got); !slices.Equal(all, want) {
		t.Errorf("%q; want %q", all, want)
	}
	const why = "Command 2 of 3 ended with exit code 3. The commands after it were not run."
	if !strings.Contains(string(got.Body), why) || len(*read) != 1 || !strings.Contains((*read)[0], `"notRun":true`) {
		t.Errorf("the model read %q: %s", *read, got.Body)
	}
	audit := string(h.call("GET", "/api/agent/audit?runId="+got.RunID, "").Body)
	if !strings.Contains(audit, `"commandsRun":"2"`) || !strings.Contains(audit, `"exit":"3"`) {
		t.Errorf("%s; want audit with %q, audit with %q", audit, `"commandsRun":"2"`, `"exit":"3"`)
	}
}

// TestTerminalListCard checks the parts of a card that follow from single commands.
func TestTerminalListCard(t *testing.T) {
	h := onTerminal(t, map[string]any{"autoRun": "read_only"}, "TERMINAL_DENY=shutdown")
	read := h.proposesList("pwd", "whoami")
	if got := h.askOn("Look."); got.Status != "completed" || len(*read) != 1 ||
		!strings.Contains((*read)[0], h.srv.Home) {
		t.Fatalf("commands that only look: %q %s", *read, got.Body)
	}
	h.proposesList("pwd", "rm -rf build")
	got := h.askOn("Clean up.")
	if len(got.Approvals) != 1 || !strings.Contains(string(got.Body), `"Command 2: `) ||
		!strings.Contains(string(got.Body), `"class":"destructive"`) || !strings.Contains(string(got.Body), `"confirm":"`) {
		t.Errorf("a destructive command: %s", got.Body)
	}
	h.stop(got)
	h.proposesList("touch a", "shutdown now")
	if got := h.askOn("Stop it."); len(got.Approvals) != 0 || h.exists("a") ||
		!strings.Contains(string(got.Body), "forbidden a program") {
		t.Errorf("a denied command: %s", got.Body)
	}
}

// TestTerminalListEdited leaves one command out and changes another. The approval covers only the commands that are
// left.
func TestTerminalListEdited(t *testing.T) {
	h := onTerminal(t, nil)
	h.proposesList("echo one >> witness", "echo two >> witness", "echo three >> witness")
	asked := h.askOn("Do it.")
	bad := h.resolve(asked.Approvals[0], "approve_with_edits", testkit.Commands("echo one", "echo 'a"))
	if bad.HTTP != 400 || !strings.Contains(string(bad.Body), `commands/1/command`) {
		t.Errorf("%d %s; want bad.HTTP 400, bad.Body with “commands/1/command”", bad.HTTP, bad.Body)
	}
	if none := h.resolve(asked.Approvals[0], "approve_with_edits", testkit.Commands()); none.HTTP != 400 {
		t.Errorf("%d %s; want none.HTTP 400", none.HTTP, none.Body)
	}
	got := h.resolve(asked.Approvals[0], "approve_with_edits",
		testkit.Commands("echo three >> witness", "echo 2 >> witness"))
	if got.HTTP != 200 {
		t.Fatalf("%d %s; want got.HTTP 200", got.HTTP, got.Body)
	}
	if got = h.run(got); got.Status != "completed" || h.witness() != "three\n2\n" {
		t.Errorf("%q %s; want got.Status “completed”, h.witness() %q", h.witness(), got.Body, "three\n2\n")
	}
}

// TestStopInAList cancels the run while the second of three commands runs. That command is ended, and the third never
// starts.
func TestStopInAList(t *testing.T) {
	h := onTerminal(t, nil)
	lines := []string{"echo one >> witness", "touch begun; sleep 600", "echo three >> witness"}
	h.proposesList(lines...)
	asked := h.askOn("Do it.")
	if a := h.resolve(asked.Approvals[0], "approve_once", nil); a.HTTP != 200 {
		t.Fatalf("%d %s; want a.HTTP 200", a.HTTP, a.Body)
	}
	wait := h.moving()
	await.That(t, "the second command begins", func() bool { return h.exists("begun") })
	h.stop(asked)
	wait()
	got := h.run(asked)
	if !cancelled(got) || h.witness() != "one\n" {
		t.Fatalf("%q %s", h.witness(), got.Body)
	}
	all := listed(t, got)
	if len(all) != 3 || all[0] != "command 0 "+lines[0] || !strings.HasPrefix(all[1], "error ") ||
		all[2] != "aborted - "+lines[2] {
		t.Errorf("%q", all)
	}
}
