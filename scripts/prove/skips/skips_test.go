package skips

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// skips implements the part of testing.TB that realpart needs, and records the skip's message.
type skips struct{ said *string }

func (skips) Helper()                            {}
func (skips) Fatalf(format string, args ...any)  { panic(fmt.Sprintf(format, args...)) }
func (s skips) Skipf(format string, args ...any) { *s.said = fmt.Sprintf(format, args...) }
func printed(action, test, output string) string {
	const line = `{"Action":%q,"Package":"github.com/countersign-run/countersign/shared/a","Test":%q,"Output":%q}` + "\n"
	return fmt.Sprintf(line, action, test, output)
}

// TestSum reads the output of go test about tests that lack programs.
func TestSum(t *testing.T) {
	t.Setenv("REQUIRE_ALL", "")
	var out strings.Builder
	for _, p := range realpart.All {
		var said string
		p.Absent(skips{&said}, "it is nowhere")
		out.WriteString(printed("output", "Test", "    a_test.go:1: "+said+"\n") + printed("skip", "Test", ""))
	}
	for test, said := range map[string]string{"TestLong": "left out by -short: it is long", "TestRoot": "root alone"} {
		out.WriteString(printed("output", test, said+"\n") + printed("skip", test, ""))
	}
	out.WriteString(printed("fail", "TestBad", ""))
	r := proof.Trial("skips", 0, &strings.Builder{})
	skipped, err := read(strings.NewReader(out.String()), r)
	if err != nil || r.Findings() != 1 {
		t.Errorf("%d findings, %v", r.Findings(), err)
	}
	got := sum(skipped)
	for _, p := range realpart.All {
		if !strings.Contains(got, "absent: "+p.Name+"; 1 tests skip:\n    shared/a Test\n") ||
			strings.Count(got, "to install: "+p.Install+"\n") != 1 {
			t.Errorf("of %s it says\n%s", p.Name, got)
		}
	}
	if !strings.HasSuffix(got, "\n1 tests were left out by -short, 1 skip for other reasons (-v)") {
		t.Errorf("it says\n%s", got)
	}
}
