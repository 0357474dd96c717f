package main

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// exec runs ops with the environment, and returns the exit status and the output.
func exec(t *testing.T, env map[string]string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	err := execute(t.Context(), args, func(name string) string { return env[name] }, &o, &e)
	code = status(err, &e)
	return code, o.String(), e.String()
}

// TestHelp asks every command for help with the flag at each position. The help must be printed, and no file written.
func TestHelp(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"-h"}, {"--help"}, {"help"}} {
		code, out, errs := exec(t, nil, args...)
		if code != 0 || errs != "" || !strings.HasPrefix(out, "usage: go run ./scripts/ops COMMAND\n") {
			t.Errorf("%q: status %d\n%s%s", args, code, out, errs)
		}
		for name := range commands {
			if !strings.Contains(out, "\n  "+name+" ") {
				t.Errorf("%q does not mention %s", args, name)
			}
		}
	}
	for name, c := range commands {
		if !strings.Contains(string(source), "\n//\tgo run ./scripts/ops "+name+" ") {
			t.Errorf("the doc comment of the command does not mention %s", name)
		}
		for _, args := range [][]string{{"-h"}, {"--help"}, {"x", "-h"}} {
			args = slices.Concat([]string{name}, args)
			code, out, errs := exec(t, nil, args...)
			if code != 0 || errs != "" || !strings.HasPrefix(out, "usage: go run ./scripts/ops "+name) ||
				!strings.Contains(out, c.short) || !strings.Contains(out, "\nexamples:\n  go run ./scripts/ops "+name) {
				t.Errorf("%q: status %d\n%s%s", args, code, out, errs)
			}
		}
	}
	_, out, _ := exec(t, nil, "delete-user", "-h")
	for _, flag := range []string{"USER [flags]", "-yes", "-wait duration", "(default 2m0s)"} {
		if !strings.Contains(out, flag) {
			t.Errorf("delete-user -h does not say %q:\n%s", flag, out)
		}
	}
	if written, err := os.ReadDir("."); err != nil || len(written) > 0 {
		t.Errorf("help wrote files: %v (%v)", written, err)
	}
}

func TestStatus(t *testing.T) {
	for name, args := range map[string][]string{
		"no command": nil, "another command": {"mend"}, "another flag": {"story", "-all"},
	} {
		code, out, errs := exec(t, nil, args...)
		if code != 2 || out != "" || !strings.HasPrefix(errs, "ops: ") || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: status %d\n%s%s", name, code, out, errs)
		}
	}
	var errs strings.Builder
	if code := status(errors.Join(errFailed, errors.New("the store cannot be closed")), &errs); code != 2 ||
		!strings.Contains(errs.String(), "cannot be closed") {
		t.Errorf("errFailed joined with another error: status %d: %s", code, errs.String())
	}
}
