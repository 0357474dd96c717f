package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLaunch starts the launcher with a go command that says what it is asked: it has said that it compiles, and hands
// flags, output and exit status over.
func TestLaunch(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "launcher")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("it does not build: %v\n%s", err, out)
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
		t.Errorf("it ends with %v, and on the output %q", err, out.String())
	}
	if !strings.HasPrefix(errs.String(), "Compiling the local server: a minute or two") {
		t.Errorf("it says %q", errs.String())
	}
}

// TestTheLauncherIsSmall holds the launcher to the standard library, so that its own first build takes seconds.
func TestTheLauncherIsSmall(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		if strings.Contains(name, ".") && !strings.HasPrefix(name, "vendor/") &&
			name != strings.TrimSuffix(server, "/local") || name == "net/http" {
			t.Errorf("it links %s", name)
		}
	}
}
