package cost

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/infra"
)

var update = flag.Bool("update", false, "write README.md")

// TestPaper compares README.md with the counts and the prices.
func TestPaper(t *testing.T) {
	text, err := Paper()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("README.md", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if held, err := os.ReadFile("README.md"); err != nil || string(held) != text {
		t.Errorf("README.md is out of date: run go test ./infra/cost -update: %v", err)
	}
}

// TestMonth compares the calculation with a manual one: 1,000 runs a day that write 10 documents and read 5, in one
// call of 3.1 seconds with one model call.
func TestMonth(t *testing.T) {
	c := counts{Reads: 5, Writes: 10, Messages: 1, LogLines: 1,
		Invocations: []invocation{{Function: "f", ModelCalls: 1}}}
	f := map[string]infra.Function{"f": {CPU: "1", Memory: "512Mi", Concurrency: 40, MaxInstances: 20}}
	want := map[string]float64{
		"documents written": 30_000 * 10 * 0.18 / 100_000, // 0.54
		"documents read":    30_000 * 5 * 0.06 / 100_000,  // 0.09
		// 3,100 seconds of requests a day, few of them concurrent: 3,045 seconds of an instance.
		"functions": 30*3_045*(0.000024+0.0000025/2) + 30_000*0.4/1e6,
		"messages":  30_000 * 2_000 * 40 / math.Pow(2, 40),
		"log":       30_000 * 1_600 * 0.5 / math.Pow(2, 30),
		"the model": 30_000 * (2_000*0.75 + 200*3.75) / 1e6,
	}
	for _, s := range month(c, f, 1_000) {
		if d := s.dollar - want[s.what]; math.Abs(d) > 0.001 {
			t.Errorf("%s: %.4f, want %.4f", s.what, s.dollar, want[s.what])
		}
	}
	if got := bounds(c, f)[0]; got.name != "tokens to the Gemini API" || got.runs != 500*1440/5 {
		t.Errorf("the first quota is %s, met at %v runs", got.name, got.runs)
	}
}

// TestInstanceSeconds checks that few requests pay for their own time, and many share instances.
func TestInstanceSeconds(t *testing.T) {
	for atOnce, want := range map[float64]float64{0: 0, 0.001: 86.36, 200: 86_400 * 10} {
		if got := instanceSeconds(atOnce, 20); math.Abs(got-want) > 0.5 {
			t.Errorf("%v at once: %.2f seconds, want %.2f", atOnce, got, want)
		}
	}
}

// TestBrowser compares the cost of one open console with a manual calculation, and the times with those in the console.
func TestBrowser(t *testing.T) {
	polls, looks := 30*8*144.0, 30*8*240.0
	want := map[string]float64{
		"documents read": (polls*3 + looks*2) * 0.06 / 100_000,
		"functions":      30*8*3600*(1-math.Exp(-1-0.1/15))*(0.000024+0.0000025/4) + (polls+looks)*0.4/1e6,
		"log":            (polls + looks) * 1_600 * 0.5 / math.Pow(2, 30),
	}
	for _, s := range browsers(infra.Function{CPU: "1", Memory: "256Mi", Concurrency: 80}, 1) {
		if d := s.dollar - want[s.what]; math.Abs(d) > 0.001 {
			t.Errorf("%s: %.4f, want %.4f", s.what, s.dollar, want[s.what])
		}
	}
	for file, line := range map[string]string{
		"pending.js": fmt.Sprintf("const patience = %v;", pollSeconds),
		"app.js":     fmt.Sprintf("setInterval(look, %v);", lookSeconds*1000),
	} {
		text, err := os.ReadFile("../../shared/web/site/" + file)
		if err != nil || !strings.Contains(string(text), line) {
			t.Errorf("%s does not say %q: %v", file, line, err)
		}
	}
}

func TestGrouped(t *testing.T) {
	for f, want := range map[float64]string{0: "0", 0.5: "0.50", 42.4: "42", 100: "100", 1234.5: "1,234",
		1e7: "10,000,000"} {
		if got := grouped(f); got != want {
			t.Errorf("%v is %q, want %q", f, got, want)
		}
	}
}
