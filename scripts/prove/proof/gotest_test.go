package proof

import (
	"fmt"
	"testing"
)

// TestOutcome checks the text that names the failed tests.
func TestOutcome(t *testing.T) {
	for want, by := range map[string][]string{"the whole package": nil, "a, b": {"a", "b"},
		"a, b, c and 2 more": {"a", "b", "c", "d", "e"}} {
		if got := (Tested{By: by}).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestGoTestTimeout checks that a timeout does not count as a caught fault.
func TestGoTestTimeout(t *testing.T) {
	const fails = `{"Action":"run","Test":"TestTerraform/agent"}
{"Action":"output","Test":"TestTerraform/agent","Output":"%s"}
{"Action":"fail","Test":"TestTerraform/agent"}
{"Action":"fail"}`
	for said, cut := range map[string]bool{"panic: test timed out after 10m0s\\n": true,
		"    a_test.go:1: it timed out\\n": false} {
		if o := ReadTested(fmt.Appendf(nil, fails, said), true); o.Cut != cut || !o.Failed ||
			o.String() != "TestTerraform/agent" {
			t.Errorf("%q is read as %+v", said, o)
		}
	}
}

// TestGoTestFailureOfNoTest checks that a failure without a failed test does not count as caught, and reports the go
// command's output.
func TestGoTestFailureOfNoTest(t *testing.T) {
	const fails = `go: updates to go.mod needed
{"Action":"build-output","Output":"./a.go:1:1: vet: unused\n"}
{"Action":"fail"}`
	o := ReadTested([]byte(fails), true)
	if !o.Failed || len(o.By) > 0 || o.Last() != "go: updates to go.mod needed; ./a.go:1:1: vet: unused" {
		t.Errorf("%+v", o)
	}
}
