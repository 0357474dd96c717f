package countersign_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/embedded"
)

// within returns what a tool of an agent with the options gets.
func within(t *testing.T, o countersign.Options) *countersign.SessionContext {
	t.Helper()
	var got *countersign.SessionContext
	o.Provider = newScript(call("look", map[string]any{}), say("Done."))
	o.Tools = append(o.Tools, countersign.DefineTool(countersign.ToolConfig{Name: "look", Description: "Looks."},
		func(_ context.Context, s *countersign.SessionContext, _ struct{}) (string, error) {
			got = s
			return "", nil
		}))
	if _, err := newAgent(t, o).As("ana").NewSession().Send(t.Context(), "look"); err != nil || got == nil {
		t.Fatalf("the tool was given %v: %v", got, err)
	}
	return got
}

func TestSessionContext(t *testing.T) {
	dir := t.TempDir()
	began := time.Now()
	s := within(t, countersign.Options{Dir: dir})
	if s.SessionID == "" || s.RunID == "" || s.ActionID == "" || s.User != "ana" || s.Dir != dir || s.Agent == nil ||
		s.Time.Before(began.Add(-time.Minute)) || s.Time.After(time.Now().Add(time.Minute)) {
		t.Errorf("%+v", s)
	}
	if _, err := s.Agent.Resume(t.Context(), s.SessionID); err != nil {
		t.Errorf("the agent is not this user's: %v", err)
	}
	if s := within(t, countersign.Options{}); !filepath.IsAbs(s.Dir) {
		t.Errorf("the working directory is %q", s.Dir)
	}
}

// FI-001 to FI-005 of the hostile cases, and the files of the agent's own store.
func TestFS(t *testing.T) {
	dir := t.TempDir()
	st, err := embedded.Open(filepath.Join(dir, ".data"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s := within(t, countersign.Options{Dir: dir, Store: st})
	if err := s.FS.WriteFile("notes/a.txt", []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if data, err := s.FS.ReadFile("notes/a.txt"); err != nil || string(data) != "hello" {
		t.Errorf("%q, %v; want data “hello”", data, err)
	}
	if _, err := s.FS.ReadFile("AGENT.md"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if found, err := fs.Glob(s.FS, "*/*.txt"); err != nil || len(found) != 1 {
		t.Errorf("%q, %v; want len(found) 1", found, err)
	}
	for id, name := range pathCases(t, dir) {
		want := fs.ErrPermission
		if strings.Contains(name, "\x00") {
			want = fs.ErrInvalid
		}
		if data, err := s.FS.ReadFile(name); !errors.Is(err, want) || data != nil {
			t.Errorf("%s: %q is %q, %v", id, name, data, err)
		}
		if err := s.FS.WriteFile(name, nil); !errors.Is(err, want) {
			t.Errorf("%s: %q is written: %v", id, name, err)
		}
	}
	var none countersign.FS
	if _, err := none.ReadFile("a"); err == nil {
		t.Error("no directory is the working directory")
	}
}

// pathCases returns the names of the hostile cases about files, and of what holds secrets here.
func pathCases(t *testing.T, dir string) map[string]string {
	t.Helper()
	names := map[string]string{"store": ".data/countersign.db", "its log": ".data/countersign.db-wal",
		"environment": ".env",
		"FI-001":      "../../etc/passwd", "FI-002": "link-to-etc/passwd", "FI-004": "a\x00.txt", "FI-005": "/dev/zero"}
	if err := os.Symlink("/etc", filepath.Join(dir, "link-to-etc")); err != nil {
		t.Log(err)
		delete(names, "FI-002")
	}
	file := os.Getenv("HOSTILE_CASES")
	if file == "" {
		return names
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var c struct {
			ID, Target string
			Input      struct{ Args struct{ Path string } }
		}
		if strings.Contains(lines.Text(), "tool:fs.") {
			if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
				t.Fatal(err)
			}
			names[c.ID] = c.Input.Args.Path
		}
	}
	return names
}

func TestShell(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of Unix")
	}
	dir := t.TempDir()
	t.Setenv("SECRET_KEY", "canary")
	s := within(t, countersign.Options{Dir: dir, Commands: []string{"echo", "env", "pwd", "sh -c ...", "cat", "sleep",
		"head", "yes", "none-such"}})
	t.Setenv("GEMINI_API_KEY", "canary")
	exec := func(command string, o countersign.ShellOptions) (countersign.ShellResult, error) {
		t.Helper()
		return s.Shell.Exec(t.Context(), command, o)
	}
	for command, want := range map[string]countersign.ShellResult{
		"echo 'a  b' | cat": {Stdout: "a  b\n"}, "pwd": {Stdout: dir + "\n"}, "sh -c 'exit 3'": {ExitCode: 3},
		"sh -c 'exit 3' || echo b": {Stdout: "b\n"}, "cat": {Stdout: "input"},
		"none-such": {Stderr: "none-such: not found\n", ExitCode: 127},
	} {
		if got, err := exec(command, countersign.ShellOptions{Stdin: "input"}); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want got %v", command, got, err, want)
		}
	}
	got, err := exec("env", countersign.ShellOptions{Env: []string{"A=1", "LANG=x"}})
	if err != nil || strings.Contains(got.Stdout, "canary") || !strings.Contains(got.Stdout, "A=1\n") ||
		!strings.Contains(got.Stdout, "PATH="+os.Getenv("PATH")) ||
		!strings.Contains(got.Stdout, "LANG=x\n") || strings.Count(got.Stdout, "LANG=") != 1 {
		t.Errorf("the environment is %q, %v", got.Stdout, err)
	}
	got, err = exec("yes | head -n 1000000", countersign.ShellOptions{})
	if err != nil || !got.Truncated || !strings.HasPrefix(got.Stdout, "y\ny\n") {
		t.Errorf("%d bytes, %v, %v", len(got.Stdout), got.Truncated, err)
	}
	_, err = exec("sleep 3600", countersign.ShellOptions{Timeout: 300 * time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "300ms") {
		t.Errorf("a command that does not end: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Shell.Exec(ctx, "sleep 30", countersign.ShellOptions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for field, o := range map[string]countersign.ShellOptions{"Timeout": {Timeout: time.Hour},
		"Env[1]": {Env: []string{"A=", "=b"}}} {
		var wrong *countersign.Error
		if _, err := exec("pwd", o); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestContextOfFailedEffect: the record of an effect that fails after it has begun a command says that it ran.
func TestContextOfFailedEffect(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of Unix")
	}
	for command, ran := range map[string]bool{"sh -c 'touch made; exit 1'": true, "rm made": false} {
		build := countersign.DefineEffect(
			countersign.EffectConfig[struct{}, string]{Name: "build", Description: "Builds."},
			func(struct{}) countersign.Preview { return countersign.Preview{Title: "Build"} },
			func(ctx context.Context, s *countersign.SessionContext, _ struct{}) (string, error) {
				res, err := s.Shell.Exec(ctx, command, countersign.ShellOptions{})
				if err == nil && res.ExitCode != 0 {
					err = &countersign.ToolError{Message: "It did not build."}
				}
				return res.Stdout, err
			})
		st := openStore(t)
		a := newAgent(t, countersign.Options{Provider: newScript(call("build", map[string]any{}), say("It is built.")),
			Tools: []*countersign.Tool{build}, Dir: t.TempDir(), Commands: []string{"sh -c ..."}, Store: st,
			Effects: countersign.AutoApprove})
		res, err := a.NewSession().Send(t.Context(), "Build it.")
		if err != nil {
			t.Fatal(err)
		}
		page, err := (&records.Records{Store: st, Now: time.Now}).Audit(t.Context(), "local", res.RunID, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		says := slices.ContainsFunc(page.Entries, func(e audit.Entry) bool { return e.Facts["ran"] == "yes" })
		if says != ran {
			t.Errorf("%s: the audit says %+v", command, page.Entries)
		}
	}
}

// No part of a denied command runs.
func TestDeniedCommands(t *testing.T) {
	dir := t.TempDir()
	s := within(t, countersign.Options{Dir: dir, Commands: []string{"git log", "touch a", "echo"}})
	for command, says := range map[string]string{
		"git logger": `"git logger" is not among the commands that may run (git log, touch a, echo)`,
		"rm -rf .":   `"rm -rf ."`,
		"touch b":    "touch b", "touch a; rm a": "rm a", "touch a && $(id)": "a command substitution",
		"touch a > b":      "a redirection",
		"touch a; echo 'x": "cannot be parsed", "touch a & echo": "a background job",
		"eval 'touch a'":    "eval is built into shells",
		"touch a; A=b echo": "an assignment", "touch a; f() { echo; }": "a function", "echo *": "a pattern",
	} {
		got, err := s.Shell.Exec(t.Context(), command, countersign.ShellOptions{})
		if !errors.Is(err, countersign.ErrCommandDenied) || !strings.Contains(err.Error(), says) ||
			got != (countersign.ShellResult{}) {
			t.Errorf("%s: %+v, %v, want %q", command, got, err, says)
		}
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
		t.Errorf("%v, %v", made, err)
	}
	none := within(t, countersign.Options{})
	if _, err := none.Shell.Exec(t.Context(), "echo", countersign.ShellOptions{}); !errors.Is(err,
		countersign.ErrCommandDenied) {
		t.Errorf("nothing is allowed by default: %v", err)
	}
}

func TestOptionsOfTheContext(t *testing.T) {
	_, err := countersign.New(countersign.Options{Provider: newScript(), Dir: filepath.Join(t.TempDir(), "none"),
		LogLevel: "loud",
		Commands: []string{"git log", "ls; rm", "eval x", ""}})
	for _, says := range []string{"(Dir): not a directory", `(LogLevel): "loud"`, "(Commands[1])",
		"(Commands[2])", "(Commands[3])"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is not in %v", says, err)
		}
	}
	if strings.Contains(err.Error(), "Commands[0]") {
		t.Error(err)
	}
}
