package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLaunch starts the launcher with a fake go command. The launcher must say how far the compilation is, pass on what
// the go command says, and become the program with its flags, its output and its exit status.
func TestLaunch(t *testing.T) {
	launcher := built(t)
	for name, c := range map[string]struct {
		packages int
		want     string
	}{
		"first": {250, "Compiling 250 packages of the local server: a minute or two the first time, a second or two " +
			"afterwards.\ngo: downloading example.org/x v1.0.0\nCompiled 25 of 250 packages.\n" +
			"Compiled 50 of 250 packages.\nCompiled 75 of 250 packages.\nCompiled 100 of 250 packages.\n" +
			"Compiled 125 of 250 packages.\nCompiled 150 of 250 packages.\nCompiled 175 of 250 packages.\n" +
			"Compiled 200 of 250 packages.\nCompiled 225 of 250 packages.\n"},
		"one edit": {3, "Compiling 3 packages of the local server.\ngo: downloading example.org/x v1.0.0\n"},
		"again":    {0, "Starting the local server.\ngo: downloading example.org/x v1.0.0\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fakeGo(t, dir, c.packages, "exit 0")
			cmd := exec.CommandContext(t.Context(), launcher, "-addr", "127.0.0.1:9000")
			cmd.Env = []string{"PATH=" + dir, "HOME=" + dir}
			var out, errs strings.Builder
			cmd.Stdout, cmd.Stderr = &out, io.Writer(&errs)
			err := cmd.Run()
			if cmd.ProcessState.ExitCode() != 3 || out.String() != "served -addr 127.0.0.1:9000\n" {
				t.Errorf("%v, output %q", err, out.String())
			}
			if errs.String() != c.want {
				t.Errorf("it says %q,\nwant %q", errs.String(), c.want)
			}
		})
	}
}

// TestCompileFails checks that the compiler's messages are passed on, and that nothing is started.
func TestCompileFails(t *testing.T) {
	launcher, dir := built(t), t.TempDir()
	fakeGo(t, dir, 1, "echo 'local/main.go:3:1: syntax error' >&2; exit 1")
	cmd := exec.CommandContext(t.Context(), launcher)
	cmd.Env = []string{"PATH=" + dir, "HOME=" + dir, "PORT=9000"}
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || !strings.HasSuffix(string(out), "\nlocal/main.go:3:1: syntax error\n") {
		t.Errorf("exit status %d, output %q", cmd.ProcessState.ExitCode(), out)
	}
}

func built(t *testing.T) string {
	t.Helper()
	launcher := filepath.Join(t.TempDir(), "launcher")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", launcher, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the launcher: %v\n%s", err, out)
	}
	return launcher
}

// fakeGo writes a go command to dir. It lists a number of stale packages, names each when it builds, and then does as
// end says. Its program prints its arguments.
func fakeGo(t *testing.T, dir string, packages int, end string) {
	t.Helper()
	script := fmt.Sprintf(`#!/bin/sh
i=0
case $1 in
list)
	while [ $i -lt %d ]; do i=$((i+1)); printf 'true\tp%%s\t/x\n' $i; done
	printf 'false\tfmt\t/x\ntrue\t%[2]s\t/src\n' ;;
build)
	echo 'go: downloading example.org/x v1.0.0' >&2
	while [ $i -lt %[1]d ]; do i=$((i+1)); echo p$i >&2; done
	echo %[2]s >&2
	while [ "$1" != -o ]; do shift; done
	printf '#!/bin/sh\necho "served $*"\nexit 3\n' >"$2"
	/bin/chmod +x "$2"
	%[3]s ;;
esac
`, packages, server, end)
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestLauncherSize limits the launcher to the standard library and one small package, so that its first build takes
// seconds.
func TestLauncherSize(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		if strings.Contains(name, ".") && !strings.HasPrefix(name, "vendor/") &&
			name != strings.TrimSuffix(server, "/local") && !strings.HasSuffix(name, "/shared/testkit/gorun") ||
			name == "net/http" {
			t.Errorf("it links %s", name)
		}
	}
}

// TestPortInUse checks that the launcher stops before it compiles if the port is in use, and that it recognizes a local
// server.
func TestPortInUse(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"ours":            {`{"ok":true,"release":"v1.2","store":"embedded"}`, "release v1.2 of Countersign already runs at "},
		"another program": {"hello", "is used by another program: choose another port"},
		"a mute program":  {"", "is used by another program"},
	} {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			go func() {
				conn, err := ln.Accept()
				if err == nil {
					_, _ = conn.Read(make([]byte, 4<<10)) // a close with unread data resets the connection
					_, _ = io.WriteString(conn, "HTTP/1.0 200 OK\r\n\r\n"+c.answer)
					conn.Close()
				}
			}()
			if err := taken(ln.Addr().String()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
	if err := taken("127.0.0.1:1"); err != nil {
		t.Error(err)
	}
}

// TestSuspendedServer checks that the launcher names a suspended server as a possible reason if the port's program
// accepts a connection and never answers.
func TestSuspendedServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // the system accepts connections; nothing reads them
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	err = taken(ln.Addr().String())
	if err == nil || !strings.Contains(err.Error(), "does not answer: if that is a server you suspended with Ctrl-Z") {
		t.Error(err)
	}
}

// TestInvalidAddress checks that the launcher refuses an invalid address before it compiles.
func TestInvalidAddress(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:abc", "127.0.0.1:99999", "127.0.0.1:-1", "127.0.0.1:",
		"8080", "127.0.0.1:80 "} {
		if err := taken(addr); err == nil || !strings.Contains(err.Error(), "is no address to listen on") {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

func TestAddress(t *testing.T) {
	for args, want := range map[string]string{
		"": "127.0.0.1:8080", "-addr 127.0.0.1:9": "127.0.0.1:9", "--addr=127.0.0.1:9": "127.0.0.1:9",
		"-emulators -addr": "127.0.0.1:8080", "addr x": "127.0.0.1:8080",
	} {
		if got := wanted(strings.Fields(args), ""); got != want {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
	if got := wanted(nil, "9000"); got != "127.0.0.1:9000" {
		t.Errorf("PORT=9000: %s", got)
	}
}
