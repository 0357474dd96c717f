package proof

import (
	"fmt"
	"strings"
	"testing"
)

// TestFailures reads the output of tests without -v.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct{ printed, want string }{
		"a test": {"hello\n--- FAIL: TestA (0.00s)\n    a_test.go:5: red\n        it is\n--- FAIL: TestB (1.00s)\n" +
			"    a_test.go:9: green\nFAIL\n", "[{TestA [    a_test.go:5: red         it is]} " +
			"{TestB [    a_test.go:9: green]}]"},
		"a subtest": {"--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/x (0.00s)\n        a_test.go:5: red\nFAIL\n",
			"[{TestA/x [        a_test.go:5: red]}]"},
		"a test and its subtest": {"--- FAIL: TestA (0.00s)\n    a_test.go:3: both\n    --- FAIL: TestA/x (0.00s)\n" +
			"        a_test.go:5: red\n    --- PASS: TestA/y (0.00s)\nFAIL\n",
			"[{TestA [    a_test.go:3: both]} {TestA/x [        a_test.go:5: red]}]"},
		"a panic in a test": {"--- FAIL: TestA (0.00s)\npanic: moon\n\ngoroutine 7 [running]:\n",
			"[{TestA [panic: moon  goroutine 7 [running]:]}]"},
		"a panic elsewhere": {"hello\npanic: moon\n\ngoroutine 8 [running]:\n",
			"[{ [panic: moon  goroutine 8 [running]:]}]"},
		"a goroutine that is left": {"PASS\na goroutine outlives the tests: x\n",
			"[{ [a goroutine outlives the tests: x]}]"},
		"no known word": {"PASS\nwhat the tests had in common does not end: x\n",
			"[{ [PASS what the tests had in common does not end: x]}]"},
	} {
		if got := fmt.Sprint(Failures(c.printed)); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
	long := Failures("--- FAIL: TestA (0.00s)\n" + strings.Repeat("    x\n", 100) + "FAIL\n")
	if len(long) != 1 || len(long[0].Lines) != most {
		t.Errorf("a long text has %d lines left", len(long[0].Lines))
	}
}
