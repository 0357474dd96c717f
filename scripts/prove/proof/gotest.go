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

// TestTime is how long a selection of tests may take, even on a busy machine.
const TestTime = 10 * time.Minute

// Tested is how a selection of Go tests went.
type Tested struct {
	Failed, Skipped bool
	Cut             bool     // they took too long, so their failure shows nothing
	By              []string // the tests that failed, without those that only hold others
	Left            []string // the tests that were skipped
	Said            []string // what was printed, by lines
}

// GoTest runs go test with the arguments, in the directory root.
func GoTest(ctx context.Context, root string, args ...string) Tested {
	args = append([]string{"test", "-json", "-count=1", "-timeout=" + TestTime.String()}, args...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return ReadTested(out, err != nil)
}

// ReadTested reads what go test -json prints, and beside that what is no JSON: the go command's own words.
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

// Last returns the last lines that were printed.
func (o Tested) Last() string { return strings.Join(o.Said[max(0, len(o.Said)-5):], "; ") }

// String returns the names of up to three of the tests that failed.
func (o Tested) String() string {
	switch n := len(o.By); {
	case n == 0:
		return "the whole package"
	case n > 3:
		return fmt.Sprintf("%s and %d more", strings.Join(o.By[:3], ", "), n-3)
	}
	return strings.Join(o.By, ", ")
}
