package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// onHost is a deployment with a terminal of ana's on a real server.
type onHost struct {
	*proved
	srv            *sshd.Server
	host, terminal string
}

func onTerminal(t testing.TB, more map[string]any, settings ...string) *onHost {
	t.Helper()
	return onTerminalOf(t, sshd.Options{}, more, settings...)
}

// onTerminalOf is onTerminal on a server with these options.
func onTerminalOf(t testing.TB, o sshd.Options, more map[string]any, settings ...string) *onHost {
	t.Helper()
	srv := sshd.Start(t, o)
	w := deploy(t, append([]string{"TERMINAL=on", "TERMINAL_HOSTS=" + srv.Addr},
		settings...)...)
	h := &onHost{proved: w, srv: srv}
	h.host, h.terminal = h.addHost("ana", more)
	return h
}

// addHost adds the server to a user's hosts, and opens a terminal on it.
func (h *onHost) addHost(uid string, more map[string]any) (host, terminal string) {
	h.t.Helper()
	c := h.as(uid)
	host, err := c.AddHost(h.t.Context(), testkit.Login{Addr: h.srv.Addr, User: h.srv.User, Key: h.srv.Key,
		HostKeys: h.srv.HostKeys()}, more)
	if err != nil {
		h.t.Fatal(err)
	}
	if terminal, err = c.OpenTerminal(h.t.Context(), host); err != nil {
		h.t.Fatal(err)
	}
	return host, terminal
}

func (h *onHost) as(uid string) testkit.Client {
	h.t.Helper()
	c, err := h.As(h.t.Context(), uid)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// askOn starts a run on ana's terminal.
func (h *onHost) askOn(prompt string) testkit.Answer {
	h.t.Helper()
	a, err := h.as("ana").AskOn(h.t.Context(), h.terminal, "", prompt)
	if err != nil || a.HTTP != http.StatusOK {
		h.t.Fatalf("%v %d %s; want a.HTTP %v", err, a.HTTP, a.Body, http.StatusOK)
	}
	return a
}

// commands is a model that runs commands, one after the other, and then says that it is done.
type commands struct {
	lines []string

	mu        sync.Mutex
	asked     []fakegemini.Request
	responses []string
}

func (m *commands) turn(r fakegemini.Request) fakegemini.Turn {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, r)
	m.responses = nil
	for _, c := range r.Contents {
		for _, p := range c.Parts {
			if p.FunctionResponse != nil {
				m.responses = append(m.responses, string(p.FunctionResponse.Response))
			}
		}
	}
	if done := len(m.responses); done < len(m.lines) {
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "run_command", Args: testkit.Command(m.lines[done])}}}
	}
	return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "task_complete",
		Args: map[string]string{"summary": "All is well."}}}}
}

// TestTerminalCommandApproved is the shortest path: a request on a terminal, a card, an approval, the command on a real
// host, its output for the model, and the end.
func TestTerminalCommandApproved(t *testing.T) {
	h := onTerminal(t, nil)
	m := &commands{lines: []string{"echo one >> witness; cat witness"}}
	h.SetModel(m.turn)
	asked := h.askOn("Check the disk.")
	if len(asked.Approvals) != 1 || asked.Approvals[0].Tool != "run_command" {
		t.Fatalf("%s; want len(asked.Approvals) 1, asked.Approvals[0].Tool “run_command”", asked.Body)
	}
	witness := filepath.Join(h.srv.Home, "witness")
	if _, err := os.Stat(witness); err == nil {
		t.Fatal("it ran before the yes")
	}
	got := h.approve(asked)
	if got.Status != "completed" || !strings.HasSuffix(got.Summary, "\nAll is well.") {
		t.Fatalf("%s; want got.Status “completed”, got.Summary that ends with %q", got.Body, "\nAll is well.")
	}
	if text, err := os.ReadFile(witness); err != nil || string(text) != "one\n" {
		t.Errorf("%v %q; want text %q", err, text, "one\n")
	}
	if len(m.responses) != 1 || !strings.Contains(m.responses[0], `"output":"one`) ||
		!strings.Contains(m.responses[0], `"exitCode":0`) {
		t.Errorf("the model read %q", m.responses)
	}
	if temperature := m.asked[0].Temperature; temperature == nil || *temperature != 0.3 {
		t.Errorf("asked at %v", temperature)
	}
}

// resolve decides an approval as ana.
func (h *onHost) resolve(a testkit.Approval, decision string, edited any) testkit.Answer {
	h.t.Helper()
	got, err := h.as("ana").Decide(h.t.Context(), a, decision, edited)
	if err != nil {
		h.t.Fatal(err)
	}
	return got
}

// run reads ana's run, after everything requested was moved.
func (h *onHost) run(a testkit.Answer) testkit.Answer {
	h.t.Helper()
	h.deliver()
	return h.call("GET", "/api/agent/runs/"+a.RunID, "")
}

// witness is the file that a test's commands write on the host.
func (h *onHost) witness() string {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.srv.Home, "witness"))
	if err != nil && !os.IsNotExist(err) {
		h.t.Fatal(err)
	}
	return string(text)
}

// steps returns the commands of a run with their outcomes.
func (h *onHost) steps(a testkit.Answer) string {
	h.t.Helper()
	var v struct {
		Actions []struct {
			Status, ErrorReason string
			Step                struct{ Command, Output string }
		}
	}
	if err := json.Unmarshal(a.Body, &v); err != nil {
		h.t.Fatal(err)
	}
	var b strings.Builder
	for _, act := range v.Actions {
		if act.Step.Command != "" {
			fmt.Fprintf(&b, "%s %s%s: %s\n", act.Status, act.ErrorReason, act.Step.Command,
				strings.TrimSpace(strings.ReplaceAll(act.Step.Output, "\r", "")))
		}
	}
	return b.String()
}

// A read-only command runs at once if the user permits that, in the directory that an approved command has changed to.
func TestTerminalReadOnlyCommand(t *testing.T) {
	h := onTerminal(t, map[string]any{"autoRun": "read_only"})
	m := &commands{lines: []string{"pwd", "mkdir -p sub && cd sub", "pwd", "cat /etc/hostname"}}
	h.SetModel(m.turn)
	asked := h.askOn("Look.")
	if len(asked.Approvals) != 1 || len(m.responses) != 1 || !strings.Contains(m.responses[0], h.srv.Home) {
		t.Fatalf("%q: %s; want len(asked.Approvals) 1, len(m.responses) 1, m.responses[0] with %q",
			m.responses, asked.Body, h.srv.Home)
	}
	got := h.approve(asked)
	if len(m.responses) != 3 || !strings.Contains(m.responses[2], h.srv.Home+"/sub") {
		t.Errorf("the model read %q", m.responses)
	}
	if len(got.Approvals) != 1 || got.Status != "awaiting_confirmation" {
		t.Fatalf("a file is printed unasked: %s", got.Body)
	}
	if got = h.approve(got); got.Status != "completed" {
		t.Errorf("%s; want got.Status “completed”", got.Body)
	}
	if n := strings.Count(string(h.call("GET", "/api/agent/audit?runId="+asked.RunID, "").Body),
		`"kind":"intent"`); n != 4 {
		t.Errorf("%d intents on record of 4 commands: %s", n,
			h.call("GET", "/api/agent/audit?runId="+asked.RunID, "").Body)
	}
}

// Two read-only commands of the first turn run, although the first one determines the directory of the second.
func TestTerminalTwoReadOnlyCommands(t *testing.T) {
	h := onTerminal(t, map[string]any{"autoRun": "read_only"})
	h.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		if len(r.Responses()) > 0 {
			return fakegemini.Turn{Text: "Done."}
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "run_command", Args: testkit.Command("pwd")},
			{Name: "run_command", Args: testkit.Command("whoami")}}}
	})
	got := h.askOn("Look.")
	want := "completed pwd: " + h.srv.Home + "\ncompleted whoami: " + h.srv.User + "\n"
	if steps := h.steps(got); got.Status != "completed" || steps != want {
		t.Errorf("%q; want %q: %s", steps, want, got.Body)
	}
}

// A command that runs without approval after an approved command of the same turn runs in the directory that it left,
// by the rules for that place: printing a file there that is not readable needs approval, on a card that names its
// directory.
func TestTerminalReadOnlyAfterCommand(t *testing.T) {
	h := onTerminal(t, map[string]any{"autoRun": "read_only"})
	for _, dir := range []string{"logs", "secret"} {
		if err := os.Mkdir(filepath.Join(h.srv.Home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(h.srv.Home, dir, "file"), []byte("in "+dir), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	logs, secret := filepath.Join(h.srv.Home, "logs"), filepath.Join(h.srv.Home, "secret")
	paths, _ := json.Marshal(map[string]any{"readPaths": []string{logs}})
	if a := h.call("POST", "/api/agent/hosts/"+h.host, string(paths)); a.HTTP/100 != 2 {
		t.Fatalf("%d %s; want a.HTTP/100 2", a.HTTP, a.Body)
	}
	h.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		command := func(line string) fakegemini.Call {
			return fakegemini.Call{Name: "run_command", Args: testkit.Command(line)}
		}
		switch len(r.Responses()) {
		case 0:
			return fakegemini.Turn{Calls: []fakegemini.Call{command("cd logs")}}
		case 1:
			return fakegemini.Turn{Calls: []fakegemini.Call{command("cat file"), command("cd ../secret"),
				command("pwd"), command("cat file")}}
		}
		return fakegemini.Turn{Text: "Done."}
	})
	asked := h.approve(h.approve(h.askOn("Look.")))
	want := "completed cd logs: \ncompleted cat file: in logs\ncompleted cd ../secret: \ncompleted pwd: " + secret +
		"\nawaiting_confirmation cat file: \n"
	if steps := h.steps(asked); steps != want || len(asked.Approvals) != 1 ||
		!strings.Contains(string(asked.Body), "in "+secret) {
		t.Fatalf("%q; want %q: %s", steps, want, asked.Body)
	}
	if got := h.approve(asked); got.Status != "completed" || !strings.HasSuffix(h.steps(got), ": in secret\n") {
		t.Errorf("%s; want got.Status “completed”, h.steps(got) that ends with %q", got.Body, ": in secret\n")
	}
}

// A file in the readable folders is printed without approval. A file outside that a link leads to needs approval, and
// is then printed.
func TestTerminalLinkOutOfFolders(t *testing.T) {
	logs := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	for name, text := range map[string]string{filepath.Join(logs, "log"): "fine", secret: "CANARY"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(logs, "link")
	if err := os.Symlink(secret, link); err != nil {
		t.Fatal(err)
	}
	h := onTerminal(t, map[string]any{"autoRun": "read_only", "readPaths": []string{logs}})
	m := &commands{lines: []string{"cat " + logs + "/log", "cat " + link}}
	h.SetModel(m.turn)
	asked := h.askOn("Look.")
	if len(asked.Approvals) != 1 || len(m.responses) != 1 || !strings.Contains(m.responses[0], "fine") {
		t.Fatalf("%q: %s; want len(asked.Approvals) 1, len(m.responses) 1, m.responses[0] with “fine”",
			m.responses, asked.Body)
	}
	if !strings.Contains(string(asked.Body), "leads to a file outside") {
		t.Errorf("the card does not say why it asks: %s", asked.Body)
	}
	if got := h.approve(asked); got.Status != "completed" || !strings.Contains(m.responses[1], "CANARY") {
		t.Errorf("%q: %s; want got.Status “completed”, m.responses[1] with “CANARY”", m.responses, got.Body)
	}
}

// TestTerminalReadOnlyLines runs whole lines on a host. The last one has a part that prints a file outside of the
// folders, and its user is asked about all of it.
func TestTerminalReadOnlyLines(t *testing.T) {
	logs, secret := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(filepath.Join(logs, "log"), []byte("b fine\na one\nb fine\n"), 0o600),
		os.WriteFile(secret, []byte("CANARY\n"), 0o600), os.Symlink(secret, filepath.Join(logs, "link"))); err != nil {
		t.Fatal(err)
	}
	h := onTerminal(t, map[string]any{"autoRun": "read_only", "readPaths": []string{logs}})
	m := &commands{}
	var want []string
	for _, c := range [][2]string{
		{"sort LOGS/log | uniq -c | sort -rn | head -1", "2 b fine"},
		{"awk '$1 == \"a\" {print $2}' LOGS/log && wc -l <LOGS/log", `one\n3`},
		{"grep nothing LOGS/log || echo 'not there' | tr a-z A-Z", "NOT THERE"},
		{"ls -d ~ LOGS/l?g nowhere 2>/dev/null", h.srv.Home},
		{"[ -f LOGS/log ] && test ! -d LOGS/log && echo 'it is a file'", "it is a file"},
		{"find LOGS -name *g -exec basename {} ';' | sed s/g/G/", "loG"},
	} {
		m.lines, want = append(m.lines, strings.ReplaceAll(c[0], "LOGS", logs)), append(want, c[1])
	}
	m.lines = append(m.lines, "cat "+logs+"/log | head -1; cat "+logs+"/link | wc -c")
	h.SetModel(m.turn)
	asked := h.askOn("Look.")
	if len(asked.Approvals) != 1 || len(m.responses) != len(want) {
		t.Fatalf("%d answers: %q: %s", len(m.responses), m.responses, asked.Body)
	}
	for i, out := range want {
		if !strings.Contains(m.responses[i], out) {
			t.Errorf("%s printed %s; want %q", m.lines[i], m.responses[i], out)
		}
	}
	if !strings.Contains(string(asked.Body), "leads to a file outside") {
		t.Errorf("the card does not say why it asks: %s", asked.Body)
	}
}

// A pipe is not read without approval: that would take data from another program, or never end.
func TestTerminalPipe(t *testing.T) {
	logs := t.TempDir()
	if err := errors.Join(syscall.Mkfifo(filepath.Join(logs, "q"), 0o600),
		os.Symlink("q", filepath.Join(logs, "link"))); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"cat " + logs + "/q", "head -n 1 " + logs + "/link"} {
		h := onTerminal(t, map[string]any{"autoRun": "read_only", "readPaths": []string{logs}})
		m := &commands{lines: []string{line}}
		h.SetModel(m.turn)
		if asked := h.askOn("Look."); len(asked.Approvals) != 1 || len(m.responses) != 0 {
			t.Errorf("%s ran unasked: %q", line, m.responses)
		}
	}
}

// ".." after a link to a folder leads to the parent of that folder, not to the parent of the link.
func TestTerminalParentOfLink(t *testing.T) {
	app, releases := t.TempDir(), t.TempDir()
	secret := filepath.Join(releases, "env")
	err := errors.Join(os.Mkdir(filepath.Join(releases, "42"), 0o700), os.WriteFile(secret, []byte("CANARY"), 0o600),
		os.WriteFile(filepath.Join(app, "env"), []byte("fine"), 0o600),
		os.Symlink(filepath.Join(releases, "42"), filepath.Join(app, "current")))
	if err != nil {
		t.Fatal(err)
	}
	h := onTerminal(t, map[string]any{"autoRun": "read_only", "readPaths": []string{app}})
	m := &commands{lines: []string{"cat " + app + "/current/../env"}}
	h.SetModel(m.turn)
	if asked := h.askOn("Look."); len(asked.Approvals) != 1 || len(m.responses) != 0 {
		t.Errorf("it ran unasked: %q", m.responses)
	}
}

// The option that means all processes means their environments on another system.
func TestTerminalProcessesOnOtherSystem(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "uname"), []byte("#!/bin/sh\necho FreeBSD 15.0\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	h := onTerminalOf(t, sshd.Options{Path: dir + ":" + os.Getenv("PATH")}, map[string]any{"autoRun": "read_only"})
	m := &commands{lines: []string{"ps -A", "ps -ef"}}
	h.SetModel(m.turn)
	asked := h.askOn("Look.")
	if len(asked.Approvals) != 1 || len(m.responses) != 1 || !strings.Contains(string(asked.Body), "environment of") {
		t.Errorf("%q: %s; want len(asked.Approvals) 1, len(m.responses) 1, asked.Body with “environment of”",
			m.responses, asked.Body)
	}
}

// Two cards each have their own command, in the model's order, and equal commands are two commands.
func TestTerminalEqualCommands(t *testing.T) {
	h := onTerminal(t, nil)
	line := "echo again >> witness"
	h.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		if len(r.Responses()) > 0 {
			return fakegemini.Turn{Text: "Done."}
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "run_command", Args: testkit.Command(line)},
			{Name: "run_command", Args: testkit.Command(line)}}}
	})
	asked := h.askOn("Twice.")
	if len(asked.Approvals) != 1 {
		t.Fatalf("the second is asked about before the first was done: %s", asked.Body)
	}
	second := h.approve(asked)
	if len(second.Approvals) != 1 || second.Approvals[0].ApprovalID == asked.Approvals[0].ApprovalID ||
		h.witness() != "again\n" {
		t.Fatalf("%q %s", h.witness(), second.Body)
	}
	if got := h.approve(second); got.Status != "completed" || h.witness() != "again\nagain\n" {
		t.Errorf("%q %s; want got.Status “completed”, h.witness() %q", h.witness(), got.Body, "again\nagain\n")
	}
}

// An edited command is evaluated again. The edited command runs, and text that is no command is refused.
func TestTerminalEditedCommand(t *testing.T) {
	h := onTerminal(t, nil, "TERMINAL_DENY=reboot")
	m := &commands{lines: []string{"echo model >> witness"}}
	h.SetModel(m.turn)
	asked := h.askOn("Do it.")
	for line, status := range map[string]int{"echo 'x": http.StatusBadRequest, "echo a\u202eb": http.StatusBadRequest,
		"reboot": http.StatusForbidden, "sh -c ls": http.StatusForbidden} {
		if got := h.resolve(asked.Approvals[0], "approve_with_edits", testkit.Command(line)); got.HTTP != status {
			t.Errorf("%q: %d %s; want got.HTTP %v", line, got.HTTP, got.Body, status)
		}
	}
	if got := h.resolve(asked.Approvals[0], "approve_and_always_allow_recipient",
		nil); got.HTTP != http.StatusConflict {
		t.Errorf("always: %d %s", got.HTTP, got.Body)
	}
	if got := h.resolve(asked.Approvals[0], "approve_with_edits",
		testkit.Command("echo   user >>  witness")); got.HTTP != http.StatusOK {
		t.Fatalf("%d %s; want got.HTTP %v", got.HTTP, got.Body, http.StatusOK)
	}
	if got := h.run(asked); got.Status != "completed" || h.witness() != "user\n" {
		t.Errorf("%q %s; want got.Status “completed”, h.witness() %q", h.witness(), got.Body, "user\n")
	}
}

// A rejection is reported to the model, and the run continues.
func TestTerminalRejectedCommand(t *testing.T) {
	h := onTerminal(t, nil)
	m := &commands{lines: []string{"rm -rf witness"}}
	h.SetModel(m.turn)
	asked := h.askOn("Do it.")
	h.resolve(asked.Approvals[0], "reject", nil)
	if got := h.run(asked); got.Status != "completed" || len(m.responses) != 1 ||
		!strings.Contains(m.responses[0], "reject") {
		t.Errorf("%q %s; want got.Status “completed”, len(m.responses) 1, m.responses[0] with “reject”",
			m.responses, got.Body)
	}
}

// A call that was allowed without approval needs approval if the user has revoked the permission meanwhile. A card is
// stale if the host's directory, name or keys have changed.
func TestTerminalHostSettingRevoked(t *testing.T) {
	h := onTerminal(t, map[string]any{"autoRun": "read_only"})
	h.SetModel((&commands{lines: []string{"pwd"}}).turn)
	edit := func(body string) {
		t.Helper()
		if a := h.call("POST", "/api/agent/hosts/"+h.host, body); a.HTTP/100 != 2 {
			t.Fatalf("%d %s; want a.HTTP/100 2", a.HTTP, a.Body)
		}
	}
	edit(`{"autoRun":"none"}`)
	asked := h.askOn("Look.")
	if len(asked.Approvals) != 1 {
		t.Fatalf("%s; want len(asked.Approvals) 1", asked.Body)
	}
	edit(`{"name":"another"}`)
	if got := h.resolve(asked.Approvals[0], "approve_once", nil); got.HTTP != http.StatusConflict ||
		got.Error.Code != "stale_view" {
		t.Errorf("%d %s; want got.HTTP %v, got.Error.Code “stale_view”", got.HTTP, got.Body, http.StatusConflict)
	}
	got := h.run(asked)
	if len(got.Approvals) != 1 || !strings.Contains(string(got.Body), "@another") {
		t.Fatalf("%s; want len(got.Approvals) 1, got.Body with “@another”", got.Body)
	}
	if got = h.approve(got); got.Status != "completed" {
		t.Errorf("%s; want got.Status “completed”", got.Body)
	}
}

// A command that needs no approval, and waits for an earlier one in its turn, needs approval if the permission is gone
// when its turn comes.
func TestTerminalPermissionRevoked(t *testing.T) {
	h := onTerminal(t, map[string]any{"autoRun": "read_only"})
	h.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		looks := fakegemini.Call{Name: "run_command", Args: testkit.Command("pwd")}
		switch len(r.Responses()) {
		case 0:
			return fakegemini.Turn{Calls: []fakegemini.Call{looks}}
		case 1:
			return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "run_command",
				Args: testkit.Command("echo a >> witness")}, looks}}
		}
		return fakegemini.Turn{Text: "Done."}
	})
	asked := h.askOn("Look.")
	if len(asked.Approvals) != 1 || asked.Approvals[0].Tool != "run_command" {
		t.Fatalf("%s; want len(asked.Approvals) 1, asked.Approvals[0].Tool “run_command”", asked.Body)
	}
	if a := h.call("POST", "/api/agent/hosts/"+h.host, `{"autoRun":"none"}`); a.HTTP/100 != 2 {
		t.Fatalf("%d %s; want a.HTTP/100 2", a.HTTP, a.Body)
	}
	got := h.approve(asked)
	if len(got.Approvals) != 1 || got.Status != "awaiting_confirmation" || h.witness() != "a\n" {
		t.Fatalf("after %q the run is %s: %s", h.witness(), got.Status, got.Body)
	}
	if got = h.approve(got); got.Status != "completed" ||
		!strings.Contains(h.steps(got), "completed pwd: "+h.srv.Home) {
		t.Errorf("%s", got.Body)
	}
}

// What the operator denies neither asks nor runs, even if the model wants it. The model gets the reason, and continues.
func TestTerminalDeniedCommand(t *testing.T) {
	h := onTerminal(t, map[string]any{"autoRun": "read_only"}, "TERMINAL_DENY=reboot,uname")
	m := &commands{lines: []string{"reboot", "uname -a", "echo a >> witness; reboot", "sh -c 'echo b >> witness'"}}
	h.SetModel(m.turn)
	got := h.askOn("Do it.")
	if len(got.Approvals) > 0 || got.Status != "completed" || len(m.responses) != len(m.lines) || h.witness() != "" {
		t.Fatalf("%q, %q: %s", h.witness(), m.responses, got.Body)
	}
	for i, r := range m.responses {
		if !strings.Contains(r, "error") {
			t.Errorf("of %q the model reads %s", m.lines[i], r)
		}
	}
	record := string(h.call("GET", "/api/agent/audit?runId="+got.RunID, "").Body)
	if strings.Contains(record, `"kind":"intent"`) || strings.Count(record, `"command_denied"`) < len(m.lines) {
		t.Errorf("on record: %s", record)
	}
}

// A host that answers with another key gets no command.
func TestTerminalHostKeyChanged(t *testing.T) {
	h := onTerminal(t, nil)
	m := &commands{lines: []string{"echo x >> witness"}}
	h.SetModel(m.turn)
	asked := h.askOn("Do it.")
	h.srv.Kill()
	h.srv.NewHostKeys()
	h.srv.Restart()
	got := h.approve(asked)
	if h.witness() != "" || len(m.responses) != 1 || got.Actions[0].ErrorReason != "host_key_changed" ||
		got.Actions[0].ErrorCode != "PolicyError" {
		t.Errorf("%q %q %s; want h.witness() empty, len(m.responses) 1, got.Actions[0].ErrorReason "+
			"“host_key_changed”, got.Actions[0].ErrorCode “PolicyError”",
			h.witness(), m.responses, got.Body)
	}
}

// Two users with a terminal on the same host and user name share nothing.
func TestTerminalTwoUsersOfOneHost(t *testing.T) {
	h := onTerminal(t, nil)
	h.SetModel((&commands{lines: []string{"echo x >> witness"}}).turn)
	asked := h.askOn("Do it.")
	_, terminal := h.addHost("bob", nil)
	bob := h.as("bob")
	for what, get := range map[string]func() (testkit.Answer, error){
		"a run on ana's terminal": func() (testkit.Answer,
			error) {
			return bob.AskOn(t.Context(), h.terminal, "", "x")
		},
		"ana's run": func() (testkit.Answer, error) { return bob.Run(t.Context(), asked.RunID) },
		"ana's card": func() (testkit.Answer,
			error) {
			return bob.Resolve(t.Context(), asked.Approvals[0], "approve_once")
		},
	} {
		if a, err := get(); err != nil || a.HTTP != http.StatusNotFound {
			t.Errorf("%s: %v %d %s; want a.HTTP %v", what, err, a.HTTP, a.Body, http.StatusNotFound)
		}
	}
	if a, err := bob.AskOn(t.Context(), terminal, "", "Do it."); err != nil || len(a.Approvals) != 1 {
		t.Errorf("%v %s; want len(a.Approvals) 1", err, a.Body)
	}
	if h.witness() != "" {
		t.Errorf("h.witness() is %q; want empty", h.witness())
	}
}

// The terminal agents need a terminal, and no other agent has one.
func TestAgentsOfTerminals(t *testing.T) {
	h := onTerminal(t, nil)
	h.SetModel(testkit.Says("Hello."))
	ana := h.as("ana")
	for name, c := range map[string]struct {
		terminal, agent string
		status          int
	}{
		"the terminal's":            {h.terminal, "terminal", 200},
		"its chat":                  {h.terminal, "terminal-chat", 200},
		"none named":                {h.terminal, "", 200},
		"another":                   {h.terminal, "assistant", 400},
		"no terminal":               {"", "terminal", 400},
		"no terminal of the user's": {h.host + "-aaaaaaaaaaaaaaaaaaaaaaaaaa", "", 404},
		"no id":                     {"../x", "", 400},
	} {
		body := map[string]string{"prompt": "Hello."}
		if c.terminal != "" {
			body["terminalId"] = c.terminal
		}
		if c.agent != "" {
			body["agent"] = c.agent
		}
		if a, err := ana(t.Context(), "POST", "/api/agent/run", body); err != nil || a.HTTP != c.status {
			t.Errorf("%s: %v %d %s; want a.HTTP %v", name, err, a.HTTP, a.Body, c.status)
		}
	}
	off := deploy(t)
	if names := off.App.API.Loop.Agents.Names(); slices.Contains(names, "terminal") {
		t.Errorf("%v where terminals are off", names)
	}
}

// TestTemperatures checks the temperatures on a terminal (002-07): 0.3 for the agent and 0.7 for its chat, which has no
// tools.
func TestTemperatures(t *testing.T) {
	h := onTerminal(t, nil)
	for name, c := range map[string]struct {
		temperature float64
		tools       int
	}{"terminal": {0.3, 6}, "terminal-chat": {0.7, 0}} {
		var asked fakegemini.Request
		h.SetModel(func(r fakegemini.Request) fakegemini.Turn {
			asked = r
			return fakegemini.Turn{Text: "Hello."}
		})
		if a, err := h.as("ana").AskOn(t.Context(), h.terminal, name, "Hello."); err != nil || a.HTTP != 200 {
			t.Fatal(err, string(a.Body))
		}
		if asked.Temperature == nil || *asked.Temperature != c.temperature || len(asked.Tools) != c.tools {
			t.Errorf("%s: asked at %v with %d tools", name, *asked.Temperature, len(asked.Tools))
		}
	}
}

// TestBound20 checks that a model that never ends is called 20 times, the last time for text (002-06).
func TestBound20(t *testing.T) {
	h := onTerminal(t, map[string]any{"autoRun": "read_only"})
	asked := 0
	h.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		asked++
		if r.NoTools {
			return fakegemini.Turn{Text: "That is all."}
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "run_command", Args: testkit.Command("pwd")}}}
	})
	got := h.askOn("Go on for ever.")
	for range 5 {
		if got.Status == "completed" {
			break
		}
		got = h.run(got)
	}
	if asked != 20 || got.Status != "completed" || !strings.HasSuffix(got.Summary, "That is all.") {
		t.Errorf("asked %d times: %s", asked, got.Body)
	}
}

// A question of the model is answered in the chat, and the run continues with the answer.
func TestTerminalQuestion(t *testing.T) {
	h := onTerminal(t, nil)
	var told string
	h.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		if len(r.Responses()) > 0 {
			told = string(r.Responses()[0].Response)
			return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "task_complete",
				Args: map[string]string{"summary": "Thank you."}}}}
		}
		ask := fakegemini.Call{Name: "ask_user", Args: map[string]string{"question": "Which disk?"}}
		return fakegemini.Turn{Calls: []fakegemini.Call{ask}}
	})
	asked := h.askOn("Clean up.")
	if len(asked.Actions) != 1 || asked.Actions[0].Tool != "ask_user" || len(asked.Approvals) != 0 {
		t.Fatalf("%s; want len(asked.Actions) 1, asked.Actions[0].Tool “ask_user”, len(asked.Approvals) 0", asked.Body)
	}
	a := h.call("POST", "/api/agent/runs/"+asked.RunID+"/answers",
		`{"results":[{"callId":"`+asked.Actions[0].ActionID+`","result":"The second."}]}`)
	if a.HTTP != http.StatusOK {
		t.Fatalf("%d %s; want a.HTTP %v", a.HTTP, a.Body, http.StatusOK)
	}
	if got := h.run(asked); got.Status != "completed" || got.Summary != "Thank you." ||
		!strings.Contains(told, "The second.") {
		t.Errorf("%q %s; want got.Status “completed”, got.Summary “Thank you.”, told with “The second.”",
			told, got.Body)
	}
}

// An always-allow covers exactly this command on this host, and is removed at /allowlist.
func TestTerminalAlwaysAllowCommand(t *testing.T) {
	h := onTerminal(t, nil)
	line := "touch witness"
	h.SetModel((&commands{lines: []string{line}}).turn)
	asked := h.askOn("Do it.")
	if got := h.resolve(asked.Approvals[0], "approve_and_always_allow_command", nil); got.HTTP != http.StatusOK {
		t.Fatalf("%d %s; want got.HTTP %v", got.HTTP, got.Body, http.StatusOK)
	}
	h.run(asked)
	if err := os.Remove(filepath.Join(h.srv.Home, "witness")); err != nil {
		t.Fatal(err)
	}
	if again := h.askOn("Once more."); again.Status != "completed" || len(again.Approvals) != 0 {
		t.Errorf("%s; want again.Status “completed”, len(again.Approvals) 0", again.Body)
	}
	if _, err := os.Stat(filepath.Join(h.srv.Home, "witness")); err != nil {
		t.Error(err)
	}
	for _, other := range []string{"touch witness2", "touch witness witness2", "rm witness"} {
		h.SetModel((&commands{lines: []string{other}}).turn)
		got := h.askOn("Another.")
		if len(got.Approvals) != 1 {
			t.Errorf("%q runs unasked: %s", other, got.Body)
			continue
		}
		h.resolve(got.Approvals[0], "reject", nil)
		h.run(got)
	}
	var list struct {
		Entries []struct{ ID, Command string }
	}
	if err := json.Unmarshal(h.call("GET", "/api/agent/allowlist", "").Body, &list); err != nil ||
		len(list.Entries) != 1 ||
		!strings.HasPrefix(list.Entries[0].Command, line+" on ") {
		t.Fatalf("%v %+v", err, list)
	}
	if a := h.call("DELETE", "/api/agent/allowlist/"+list.Entries[0].ID, ""); a.HTTP/100 != 2 {
		t.Fatalf("%d %s; want a.HTTP/100 2", a.HTTP, a.Body)
	}
	h.SetModel((&commands{lines: []string{line}}).turn)
	if got := h.askOn("Again."); len(got.Approvals) != 1 {
		t.Errorf("%s; want len(got.Approvals) 1", got.Body)
	}
}

// A command that prints a file can be always allowed like any other: the user has named the file, wherever it is.
func TestTerminalAlwaysAllowPrinting(t *testing.T) {
	for _, autoRun := range []string{"none", "read_only"} {
		h := onTerminal(t, map[string]any{"autoRun": autoRun, "readPaths": []string{"/var/log"}})
		m := &commands{lines: []string{"cat /etc/hostname"}}
		h.SetModel(m.turn)
		asked := h.askOn("Look.")
		if got := h.resolve(asked.Approvals[0], "approve_and_always_allow_command", nil); got.HTTP != http.StatusOK {
			t.Fatalf("%d %s; want got.HTTP %v", got.HTTP, got.Body, http.StatusOK)
		}
		h.run(asked)
		if again := h.askOn("Once more."); again.Status != "completed" || len(again.Approvals) != 0 ||
			!strings.HasPrefix(h.steps(again), "completed cat /etc/hostname: ") {
			t.Errorf("%s: %s; want again.Status “completed”, len(again.Approvals) 0, h.steps(again) that "+
				"begins with “completed cat /etc/hostname: ”",
				autoRun, again.Body)
		}
	}
}
