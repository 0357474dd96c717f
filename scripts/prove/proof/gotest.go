package proof

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// TestTime limits a selection of tests. It leaves room for a busy machine.
const TestTime = 10 * time.Minute

// Tested is the result of a selection of Go tests.
type Tested struct {
	Failed, Skipped bool
	Cut             bool     // the tests timed out, so their failure proves nothing
	By              []string // the tests that failed, without those that only contain failed subtests
	Left            []string // the skipped tests
	Said            []string // the output, by lines
}

// GoTest runs go test with the arguments in the folder root.
func GoTest(ctx context.Context, root string, args ...string) Tested {
	args = append([]string{"test", "-json", "-count=1", "-timeout=" + TestTime.String()}, args...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return ReadTested(out, err != nil)
}

// ReadTested reads the output of go test -json. Lines that are not JSON come from the go command itself.
func ReadTested(out []byte, failed bool) Tested {
	o := Tested{Failed: failed}
	for line := range bytes.Lines(out) {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(line, &e) != nil {
			o.Said = append(o.Said, strings.TrimSpace(string(line)))
			continue
		}
		o.Cut = o.Cut || strings.HasPrefix(e.Output, "panic: test timed out after ")
		if e.Action == "output" || e.Action == "build-output" {
			o.Said = append(o.Said, strings.TrimRight(e.Output, "\n"))
		}
		if e.Test == "" {
			continue
		}
		if e.Action == "skip" {
			o.Skipped, o.Left = true, append(o.Left, e.Test)
		}
		if e.Action == "fail" {
			o.By = append(slices.DeleteFunc(o.By, func(n string) bool { return n == e.Test }), e.Test)
		}
	}
	o.By = slices.DeleteFunc(o.By, func(n string) bool {
		return slices.ContainsFunc(o.By, func(other string) bool { return strings.HasPrefix(other, n+"/") })
	})
	return o
}

// Last returns the last lines of the output.
func (o Tested) Last() string { return strings.Join(o.Said[max(0, len(o.Said)-5):], "; ") }

// String returns the names of up to three failed tests.
func (o Tested) String() string {
	switch n := len(o.By); {
	case n == 0:
		return "the whole package"
	case n > 3:
		return fmt.Sprintf("%s and %d more", strings.Join(o.By[:3], ", "), n-3)
	}
	return strings.Join(o.By, ", ")
}
