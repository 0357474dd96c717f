package mcpservers

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The environment variables that turn this program into the relay of [Cut].
const (
	cutVariable = "MCPSERVERS_CUT"
	logVariable = "MCPSERVERS_LOG"
)

// When is the moment at which a server is killed.
type When string

// The moments at which a server can be killed.
const (
	AsItBegins   When = "as it begins"    // the server has the call
	WhenItIsDone When = "when it is done" // its answer has arrived, and is lost
)

// Cut returns the command and the environment of a server that is killed at its first tool call. It also returns a
// function that reads the calls sent to it and to the servers started after it, one a line. TestMain must call [Main].
func Cut(t testing.TB, when When, server []string) (command, env []string, calls func() []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "calls")
	return append([]string{self}, server...), []string{cutVariable + "=" + string(when), logVariable + "=" + file},
		func() []string {
			b, err := os.ReadFile(file)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			return slices.Collect(strings.Lines(string(b)))
		}
}

// Main must be called at the start of TestMain. In the program that [Cut] starts, it does not return.
func Main() {
	if when := os.Getenv(cutVariable); when != "" {
		relay(When(when) == WhenItIsDone)
		os.Exit(0)
	}
}

// relay runs the command in its arguments and passes lines between the command and the client. The first tool call
// kills the command and the relay, either once the call was passed on or once its answer has arrived. LOG gets a line
// for each call.
func relay(answered bool) {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	in, err := cmd.StdinPipe()
	check(err)
	out, err := cmd.StdoutPipe()
	check(err)
	check(cmd.Start())
	die := func() {
		_ = cmd.Process.Kill() // it may be over
		os.Exit(137)
	}
	call := make(chan string, 1) // the ID of the call whose answer ends the relay
	go func() {
		lines := bufio.NewReader(os.Stdin)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				_ = in.Close()
				return
			}
			first := false
			if bytes.Contains(line, []byte(`"tools/call"`)) {
				first = note(line)
			}
			if first && answered {
				call <- idOf(line)
			}
			_, err = in.Write(line)
			check(err)
			if first && !answered {
				die()
			}
		}
	}()
	wanted := ""
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			_ = cmd.Wait()
			return
		}
		select {
		case wanted = <-call:
		default:
		}
		if wanted != "" && idOf(line) == wanted && !bytes.Contains(line, []byte(`"method"`)) {
			die()
		}
		_, err = os.Stdout.Write(line)
		check(err)
	}
}

func idOf(line []byte) string {
	_, after, _ := bytes.Cut(line, []byte(`"id":`))
	end := bytes.IndexAny(after, ",}")
	if end < 0 {
		return ""
	}
	return string(after[:end])
}

// note writes a call to the log, and reports whether it is the first.
func note(line []byte) (first bool) {
	f, err := os.OpenFile(os.Getenv(logVariable), os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	check(err)
	before, err := io.ReadAll(f)
	check(err)
	_, err = f.Write(line)
	check(err)
	check(f.Close())
	return len(before) == 0
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
