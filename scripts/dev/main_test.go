package main

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLaunch starts the launcher with a fake go command that prints its arguments. The launcher must say that it
// compiles, and pass on flags, output and exit status.
func TestLaunch(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "launcher")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the launcher: %v\n%s", err, out)
	}
	script := "#!/bin/sh\necho \"go $*\"\nexit 3\n"
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-addr", "127.0.0.1:9000")
	cmd.Env = []string{"PATH=" + dir}
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, io.Writer(&errs)
	err := cmd.Run()
	if cmd.ProcessState.ExitCode() != 3 || out.String() != "go run "+server+" -addr 127.0.0.1:9000\n" {
		t.Errorf("%v, output %q", err, out.String())
	}
	if !strings.HasPrefix(errs.String(), "Compiling the local server: a minute or two") {
		t.Errorf("it says %q", errs.String())
	}
}

// TestTheLauncherIsSmall limits the launcher to the standard library and one small package, so that its first build
// takes seconds.
func TestTheLauncherIsSmall(t *testing.T) {
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

// TestAPortInUse checks that the launcher stops before it compiles if the port is in use, and that it recognizes a
// local server.
func TestAPortInUse(t *testing.T) {
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
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	if err := taken(ln.Addr().String()); err != nil {
		t.Error(err)
	}
}

func TestTheAddressThatIsWanted(t *testing.T) {
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
