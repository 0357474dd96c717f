package chatclients

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/countersign-run/countersign/shared/engine/queue/embedded"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/emulate"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// Open starts Countersign with a queue that delivers its messages.
func Open(t *testing.T, settings ...string) *testkit.Deployment {
	t.Helper()
	return OpenWith(t, testkit.Options{Settings: append(settings, testkit.Unlimited...)})
}

// OpenWith is like Open with additional settings.
func OpenWith(t *testing.T, o testkit.Options) *testkit.Deployment {
	t.Helper()
	w := testkit.Open(t, o)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.App.Queue.(*embedded.Queue).Run(t.Context(), w.Push(w.Base)) // it ends with the test
	}()
	t.Cleanup(func() { <-done })
	return w
}

// Mails makes the model request an e-mail to each of the addresses, and then report the outcome.
func Mails(w *testkit.Deployment, to ...string) {
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		if len(r.Responses()) > 0 || r.NoTools {
			return fakegemini.Turn{Text: "That is what came of it."}
		}
		var calls []fakegemini.Call
		for _, who := range to {
			calls = append(calls, fakegemini.Call{Name: "gmail_send", Args: testkit.Mail(who, "s", "b")})
		}
		return fakegemini.Turn{Calls: calls}
	})
}

// A Driver is a client in Node that a test controls.
type Driver struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

// Drive starts a script with additional environment variables. The script reads a command from each line of its
// input, and prints its new state as a line of its output.
func Drive(t *testing.T, script string, env ...string) *Driver {
	t.Helper()
	node := emulate.Node(t)
	Modules(t)
	loads(t)
	cmd := exec.CommandContext(t.Context(), node, script)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() }) // it ends with its input
	return &Driver{t, in, bufio.NewReader(out)}
}

// Do makes the client's user do something, and returns the client's new state.
func (d *Driver) Do(what string, with map[string]any, now any) {
	d.t.Helper()
	command := map[string]any{"do": what}
	for k, v := range with {
		command[k] = v
	}
	line, err := json.Marshal(command)
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(d.in, "%s\n", line); err != nil {
		d.t.Fatal(err)
	}
	said, err := d.out.ReadBytes('\n')
	if err != nil {
		d.t.Fatalf("%s: the client has ended: %v", what, err)
	}
	if err := json.Unmarshal(said, now); err != nil {
		d.t.Fatalf("%s: %v", said, err)
	}
}
