package command_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/remote"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/command"
)

var listSuite = toolstest.Suite{
	Tool: command.New(command.Options{})[command.RunList],
	Args: testkit.Commands("touch a", "touch b"),
	Other: map[string]map[string]any{
		"commands":  testkit.Commands("touch b", "touch a"),
		"reasoning": {"reasoning": "To have another."},
	},
	Labels: []string{"Command 1", "Command 2", "Command 3", "Ended after", "Stops", "The assistant says"},
	Texts:  map[string]string{"reasoning": "The assistant says"},
	Previews: map[string]toolstest.Shown{
		"as it is": {Want: []string{"Run a list of 2 commands", "Command 1: touch a", "Command 2: touch b",
			"30 seconds each"}},
		"one": {Change: testkit.Commands("touch a"), Want: []string{"Run a list of 1 command"}},
		"times of their own": {Change: map[string]any{"commands": []map[string]any{{"command": "touch a"},
			{"command": "touch b", "timeoutSeconds": 900}}}, Want: []string{"30, 900 seconds"}},
		"a command that only looks, quoted anew": {Change: testkit.Commands(`ls  "-l"   '/var/log'`),
			Want: []string{"Command 1: ls -l /var/log"}},
	},
	Refused: map[string]toolstest.Refused{
		"no command":        {Change: testkit.Commands(), Field: "commands"},
		"eleven":            {Change: testkit.Commands(slices.Repeat([]string{"ls"}, 11)...), Field: "commands"},
		"a hidden letter":   {Change: testkit.Commands("ls", "l\u200bs"), Field: "commands/1/command"},
		"an open quotation": {Change: testkit.Commands("echo 'a", "ls"), Field: "commands/0/command"},
		"a blank reason":    {Change: map[string]any{"reasoning": "\u200b "}, Field: "reasoning"},
		"too much time": {Field: "commands/timeoutSeconds", Change: map[string]any{
			"commands": []map[string]any{{"command": "ls", "timeoutSeconds": 901}}}},
		"a place of its own": {Change: map[string]any{"cwd": "/"}, Field: "cwd"},
	},
}

func TestListSuite(t *testing.T) { listSuite.Run(t) }

var errDied = errors.New("the process died")

// dying wraps a process's connections to a host. The process dies at its n-th request, before the request is sent or
// after the host has executed it.
type dying struct {
	*remote.Pool
	host  *sshd.Server
	n     int
	after bool
	dead  bool
}

func (d *dying) Get(ctx context.Context, h *terminal.Host) (supervisor.Conn, func(), error) {
	if d.dead {
		return nil, nil, errDied
	}
	conn, release, err := d.Pool.Get(ctx, h, func(context.Context) ([]byte, error) { return d.host.Key, nil })
	return mortal{conn, d}, release, err
}

type mortal struct {
	supervisor.Conn
	of *dying
}

func (m mortal) Exec(ctx context.Context, x supervisor.Exec) (int, error) {
	m.of.n--
	m.of.dead = m.of.dead || m.of.n < 0
	if m.of.dead && (m.of.n < -1 || !m.of.after) {
		return 0, errDied
	}
	exit, err := m.Conn.Exec(ctx, x)
	if m.of.dead {
		return 0, errDied
	}
	return exit, err
}

// listWorld is a list of three commands on a real host. Each writes a line with the directory and the variable that the
// command before it has set.
type listWorld struct {
	*world
	s    *sshd.Server
	call tool.Call
}

func newListWorld(t *testing.T, lines ...string) *listWorld {
	t.Helper()
	s := sshd.Start(t, sshd.Options{})
	w := &listWorld{s: s, world: newWorld(t, func(h *terminal.Host, term *terminal.Terminal) {
		*h = *s.Host()
		h.ID, term.Cwd = hostID, ""
	})}
	args, err := json.Marshal(testkit.Commands(lines...))
	if err != nil {
		t.Fatal(err)
	}
	if args, err = command.New(command.Options{})[command.RunList].Normalize(args); err != nil {
		t.Fatal(err)
	}
	w.call = tool.Call{UID: "ana", Terminal: terminalID, ActionID: "a", Args: args, Approved: true, Output: io.Discard}
	its, _ := w.process(1<<30, false)
	if w.call.Handle, err = its.Prepare(t.Context(), w.call); err != nil {
		t.Fatal(err)
	}
	return w
}

// process returns the tool of a process that dies at its n-th request, and the process's connections.
func (w *listWorld) process(n int, after bool) (*tool.Tool, *dying) {
	d := &dying{Pool: remote.NewPool(&net.Dialer{}, remote.Times{}), host: w.s, n: n, after: after}
	w.t.Cleanup(func() { _ = d.Close() }) // it never fails
	return command.New(command.Options{Store: w.st, Hosts: d})[command.RunList], d
}

// finish makes other processes complete the list, as the engine does after a death.
func (w *listWorld) finish(over bool) tool.Outcome {
	w.t.Helper()
	its, _ := w.process(1<<30, false)
	c := w.call
	c.Over = over
	for {
		out, err := its.Reconcile(w.t.Context(), c)
		if err != nil {
			w.t.Fatal(err)
		}
		if out.Verdict != tool.NotDone {
			return out
		}
		if _, err := its.Execute(w.t.Context(), c); err != nil && !tool.IsAmbiguous(err) {
			w.t.Fatal(err)
		}
	}
}

func (w *listWorld) witness() string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.s.Home, "witness"))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return string(text)
}

// TestListKilledAnywhere kills the process of a list at each of its requests to the host, before and after the host has
// executed it. Another process completes the list: each command has run once, in its order.
func TestListKilledAnywhere(t *testing.T) {
	realpart.SSHD.Take(t)
	died := 0
	for n := range 8 {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("request %d, after it: %v", n, after), func(t *testing.T) {
				w := newListWorld(t, "mkdir sub && cd sub && echo one >> ~/witness",
					"export WORD=two; echo $WORD >> ../witness", "echo $WORD three >> ../witness")
				its, d := w.process(n, after)
				_, err := its.Execute(t.Context(), w.call)
				if d.dead {
					died++
				} else if err != nil {
					t.Fatal(err)
				}
				out := w.finish(false)
				if out.Verdict != tool.Done || out.Err != nil || w.witness() != "one\ntwo\ntwo three\n" {
					t.Errorf("%+v %v: %q; want out.Verdict %v, out.Err nil, w.witness() %q",
						out.Verdict, out.Err, w.witness(), tool.Done, "one\ntwo\ntwo three\n")
				}
				if strings.Count(string(out.Result), `"exitCode":0`) != 3 {
					t.Errorf("%s", out.Result)
				}
				term, err := terminal.ReadTerminal(t.Context(), w.st, "ana", terminalID)
				if err != nil || !strings.HasSuffix(term.Cwd, "/sub") {
					t.Errorf("%v: the terminal is in %q", err, term.Cwd)
				}
			})
		}
	}
	if died < 6 {
		t.Errorf("only %d processes died", died)
	}
}

// TestListCutOff stops a list whose process died after its first command. That command's result is recorded, and the
// others never run.
func TestListCutOff(t *testing.T) {
	w := newListWorld(t, "echo one >> ~/witness", "echo two >> ~/witness")
	its, _ := w.process(1<<30, false)
	var d *dying
	for n := 0; w.witness() == ""; n++ { // until a process dies before its second command is sent
		var mortal *tool.Tool
		mortal, d = w.process(n, false)
		_, _ = mortal.Execute(t.Context(), w.call) // the error says that it died
	}
	if !d.dead {
		t.Fatal("the process lives")
	}
	if err := its.Interrupt(t.Context(), w.call); err != nil {
		t.Fatal(err)
	}
	out := w.finish(true)
	if out.Verdict != tool.Done || !tool.HasRan(out.Err) || w.witness() != "one\n" {
		t.Errorf("%s %v %q", out.Verdict, out.Err, w.witness())
	}
	got := string(tool.PartialResult(out.Err))
	if !strings.Contains(got, `"exitCode":0`) || !strings.Contains(got, `"notRun":true`) {
		t.Errorf("%s; want got with %q, got with %q", got, `"exitCode":0`, `"notRun":true`)
	}
	if _, err := its.Execute(t.Context(), w.call); err == nil || w.witness() != "one\n" {
		t.Errorf("a late process: %v %q", err, w.witness())
	}
}
