//go:build unix

package gorun_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/gorun"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

const role = "GORUN_TEST_ROLE"

// TestMain makes this program the parent that a test starts, or the child of that parent.
func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "parent":
		child := exec.Command(os.Args[1])
		child.Env, child.Stdin, child.Stdout = append(os.Environ(), role+"=child"), os.Stdin, os.Stdout
		if err := child.Run(); err != nil {
			os.Exit(1)
		}
	case "child":
		gorun.Follow()
		fmt.Println(gorun.Parent() != 0)
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test closes it
	default:
		leaktest.Main(m)
	}
}

// TestFollowGoRun kills a parent process that is named like the go command, in any folder. The program, whose output is
// a pipe, must end too. If the parent has another name, the program must continue.
func TestFollowGoRun(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, followed := range map[string]bool{"go": true, "sh": false, "go-build": false} {
		parent := filepath.Join(t.TempDir(), name)
		if err := os.Link(self, parent); err != nil {
			copied(t, self, parent)
		}
		cmd := exec.CommandContext(t.Context(), parent, self)
		cmd.Env = append(os.Environ(), role+"=parent")
		in, wrong := cmd.StdinPipe()
		out, err := cmd.StdoutPipe()
		if err := errors.Join(wrong, err); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(out)
		said, err := r.ReadString('\n')
		if err != nil || said != fmt.Sprintln(followed) {
			t.Errorf("%s: %q %v", name, said, err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if !followed {
			_ = in.Close() // the program still reads, so it has not ended
		}
		if _, err := io.ReadAll(r); err != nil { // until the program has ended
			t.Error(err)
		}
		_ = cmd.Wait() // "signal: killed"
	}
}

func copied(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
}
