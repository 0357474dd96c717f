package command_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/tools/command"
)

// TestLookUp loses the record of a command, as restoring a backup does. The journal on the host shows that the command
// ran. Without a journal, nothing is proven.
func TestLookUp(t *testing.T) {
	w := newListWorld(t, "echo unused")
	_, hosts := w.process(1<<30, false)
	run := command.New(command.Options{Store: w.st, Hosts: hosts})[command.Run]
	args, err := run.Normalize(json.RawMessage(`{"command":"echo once >> witness","reasoning":"To have it."}`))
	if err != nil {
		t.Fatal(err)
	}
	c := tool.Call{UID: "ana", Terminal: terminalID, ActionID: "lost", Args: args, Approved: true, Output: io.Discard}
	if out, err := run.LookUp(t.Context(), c); err != nil || out.Verdict != tool.Unknown || out.Reason == "" {
		t.Errorf("before the command: %+v, %v", out, err)
	}
	begun := c
	if begun.Handle, err = run.Prepare(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Execute(t.Context(), begun); err != nil {
		t.Fatal(err)
	}
	out, err := run.LookUp(t.Context(), c)
	if err != nil || out.Verdict != tool.Done || !strings.Contains(string(out.Result), `"exitCode":0`) {
		t.Errorf("after the command: %+v %s, %v", out, out.Result, err)
	}
	if got := w.witness(); got != "once\n" {
		t.Errorf("the command ran: %q", got)
	}
}
