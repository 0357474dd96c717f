//go:build unix

package process_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/countersign/internal/process"
	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/testkit/await"
)

// listOf reads a command for which everything is allowed that it has.
func listOf(t *testing.T, command string) shell.List {
	t.Helper()
	allowed, err := shell.Allow("sh ...", "true", "false", "echo", "cat", "printf", "none-such", "./script",
		"pwd", "env",
		"sort", "yes", "head",
		"./plain", "./folder")
	if err != nil {
		t.Fatal(err)
	}
	list, err := allowed.Parse(command)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

var env = []string{"PATH=relative:" + os.Getenv("PATH"), "LANG=C"}

func run(t *testing.T, ctx context.Context, command string) (process.Result, error) {
	t.Helper()
	return process.Run(ctx, process.Command{List: listOf(t, command), Dir: t.TempDir(), Env: env})
}

func TestRun(t *testing.T) {
	for command, want := range map[string]process.Result{
		"echo a":                           {Stdout: "a\n"},
		"echo '$HOME' \"a  b\" '*'":        {Stdout: "$HOME a  b *\n"},
		"sh -c 'echo a >&2; exit 3'":       {Stderr: "a\n", ExitCode: 3},
		"true && echo a || echo b":         {Stdout: "a\n"},
		"false && echo a || echo b":        {Stdout: "b\n"},
		"false || false; echo a":           {Stdout: "a\n"},
		"true && false":                    {ExitCode: 1},
		"! true":                           {ExitCode: 1},
		"! false && echo a":                {Stdout: "a\n"},
		"echo b a | cat | sort":            {Stdout: "b a\n"},
		"printf 'b\\na\\n' | sort":         {Stdout: "a\nb\n"},
		"false | true":                     {},
		"true | false":                     {ExitCode: 1},
		"yes | head -n 1":                  {Stdout: "y\n"},
		"none-such":                        {Stderr: "none-such: not found\n", ExitCode: 127},
		"none-such || echo a":              {Stdout: "a\n", Stderr: "none-such: not found\n"},
		"echo a | none-such | cat":         {Stderr: "none-such: not found\n"},
		"cat":                              {},
		"sh -c 'kill -9 $$'":               {ExitCode: 137},
		"env | sort":                       {Stdout: "LANG=C\nPATH=relative:" + os.Getenv("PATH") + "\n"},
		"sh -c 'echo a; echo b >&2' | cat": {Stdout: "a\n", Stderr: "b\n"},
	} {
		got, err := run(t, t.Context(), command)
		if err != nil || got != want {
			t.Errorf("%s: %+v (%v), want %+v", command, got, err, want)
		}
	}
}

func TestDirAndStdin(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"script": 0o755, "plain": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\npwd\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "relative"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "relative", "none-such"), []byte("#!/bin/sh\necho found\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]process.Result{
		"./script":       {Stdout: dir + "\n"},
		"./plain":        {Stderr: "./plain: not found\n", ExitCode: 127},
		"./folder":       {Stderr: "./folder: not found\n", ExitCode: 127},
		"none-such":      {Stderr: "none-such: not found\n", ExitCode: 127},
		"cat | cat":      {Stdout: "input"},
		"true; cat":      {Stdout: "input"},
		"echo a && true": {Stdout: "a\n"},
	} {
		got, err := process.Run(t.Context(), process.Command{List: listOf(t, command), Dir: dir, Env: env,
			Stdin: "input"})
		if err != nil || got != want {
			t.Errorf("%s: %+v (%v), want %+v", command, got, err, want)
		}
	}
	long := strings.Repeat("x", 1<<20)
	if got, err := process.Run(t.Context(), process.Command{List: listOf(t, "true"), Dir: dir, Env: env,
		Stdin: long}); err != nil || got.ExitCode != 0 {
		t.Errorf("what is not read: %+v, %v", got.ExitCode, err)
	}
}

func TestOutputLimit(t *testing.T) {
	got, err := run(t, t.Context(), "yes 123456789é | head -c 3000000")
	if err != nil || !got.Truncated || len(got.Stdout) > process.MaxOutput+64 || !utf8.ValidString(got.Stdout) ||
		!strings.HasSuffix(got.Stdout, " bytes left out …]\n") {
		t.Errorf("%d bytes, %v, %v, ends in %q", len(got.Stdout), got.Truncated, err, got.Stdout[max(0,
			len(got.Stdout)-50):])
	}
	got, err = run(t, t.Context(), "head -c 1048576 /dev/zero")
	if err != nil || got.Truncated || len(got.Stdout) != process.MaxOutput {
		t.Errorf("%d bytes, %v, %v", len(got.Stdout), got.Truncated, err)
	}
}

// alive reports whether a process that a test has started is there.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil && !zombie(pid) }

// zombie reports whether only the entry of a process is left, because its parent, the machine's first, has not looked.
func zombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// stubborn ignores what asks it to end, starts others that do, and writes the processes' ids to the file begun.
const stubborn = `sh -c 'trap "" TERM INT HUP
	sh -c "trap \"\" TERM HUP; while :; do sleep 1; done" & echo $! $$ > it; mv it begun; while :; do sleep 1; done'`

func pids(t *testing.T, out string) (all []int) {
	t.Helper()
	for _, f := range strings.Fields(out) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		all = append(all, pid)
	}
	if len(all) == 0 {
		t.Fatalf("%q names no process", out)
	}
	return all
}

func gone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		await.That(t, fmt.Sprintf("process %d ends", pid), func() bool { return !alive(pid) })
	}
}

func TestTimeLimit(t *testing.T) {
	over := errors.New("over")
	for _, command := range []string{stubborn, stubborn + " | cat", "true && " + stubborn + "; echo never"} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			for wait.For(ctx, 10*time.Millisecond) == nil {
				if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
					cancel(over)
				}
			}
		}()
		got, err := process.Run(ctx, process.Command{List: listOf(t, command), Dir: dir, Env: env})
		cancel(nil)
		if !errors.Is(err, over) || strings.Contains(got.Stdout, "never") {
			t.Errorf("%.20s…: %+v, %v", command, got, err)
		}
		begun, err := os.ReadFile(filepath.Join(dir, "begun"))
		if err != nil {
			t.Fatal(err)
		}
		gone(t, pids(t, string(begun)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := run(t, ctx, "echo a"); !errors.Is(err, context.Canceled) || got.Stdout != "" {
		t.Errorf("too late to begin: %+v, %v", got, err)
	}
}

// What a program leaves running in its group ends with it; what has left the group does not hold up the answer.
func TestRunEndsProcessGroup(t *testing.T) {
	got, err := run(t, t.Context(), `sh -c 'sh -c "trap \"\" TERM HUP; while :; do sleep 1; done" & echo $!'`)
	if err != nil {
		t.Fatal(err)
	}
	gone(t, pids(t, got.Stdout))
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	got, err = run(t, t.Context(), `sh -c 'setsid sh -c "echo \$\$; exec sleep 600" & sleep 0.3'`)
	if err != nil {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, pid := range pids(t, got.Stdout) {
		if !alive(pid) {
			t.Error("the answer came after the end of what has left the group")
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// TestOutputOnBusyMachine gives the reader no time after the end of the programs: all of their output is read.
func TestOutputOnBusyMachine(t *testing.T) {
	t.Cleanup(process.SetDrain(0))
	text := strings.Repeat("0123456789abcdef", 2<<10) // half of a pipe
	for range 20 {
		got, err := process.Run(t.Context(), process.Command{List: shell.List{{When: shell.Always,
			Commands: [][]string{{"cat"}, {"cat"}}}}, Dir: os.TempDir(), Env: env, Stdin: text})
		if err != nil || got.Stdout != text {
			t.Fatalf("%d bytes arrive, %v; want %d", len(got.Stdout), err, len(text))
		}
	}
}

func TestRunConcurrently(t *testing.T) {
	files := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("open files are not listed here")
		}
		return len(entries)
	}
	if _, err := run(t, t.Context(), "echo a | cat"); err != nil {
		t.Fatal(err)
	}
	before := files()
	done := make(chan error, 20)
	for range cap(done) {
		go func() {
			got, err := process.Run(t.Context(), process.Command{List: shell.List{{When: shell.Always,
				Commands: [][]string{{"echo", "a"}, {"cat"}}}},
				Dir: os.TempDir(), Env: env})
			if err == nil && got.Stdout != "a\n" {
				err = fmt.Errorf("the output is %q; want a", got.Stdout)
			}
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if after := files(); after > before {
		t.Errorf("%d files were open, and %d are", before, after)
	}
}
