package cost

import (
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
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

// TestFilesMonth compares the calculation with a manual one: 1,000 files a day of 4 MiB, which are kept for a year.
func TestFilesMonth(t *testing.T) {
	want := map[string]float64{
		"storage":           30_000 * 12 * 4.0 / 1_024 * 0.020,
		"operations":        30_000 * (0.005 + 3.1*0.0004) / 1_000,
		"load balancer":     30_000 * 1.1 * 4 / 1_024 * 0.008,
		"egress":            3_000 * 4.0 / 1_024 * 0.12,
		"Cloud KMS":         30_000 * 4.1 * 0.03 / 10_000,
		"documents written": 30_000 * 9 * 0.18 / 100_000,
		"documents read":    30_000 * 10 * 0.06 / 100_000,
		"the model":         30_000 * 3 * 40 * 560 * 0.75 / 1e6,
	}
	all := filesMonth(1_000)
	if len(all) != len(want) {
		t.Errorf("%d items, want %d", len(all), len(want))
	}
	for _, s := range all {
		if d := s.dollar - want[s.what]; math.Abs(d) > 0.001 {
			t.Errorf("%s: %.4f, want %.4f", s.what, s.dollar, want[s.what])
		}
	}
}

// TestMonth compares the calculation with a manual one: 1,000 runs a day that write 10 documents and read 5, in one
// call of 4.7 seconds with one model call and two effects.
func TestMonth(t *testing.T) {
	c := counts{Reads: 5, Writes: 10, Messages: 1, LogLines: 1,
		Invocations: []invocation{{Function: "f", ModelCalls: 1, Effects: 2}}}
	f := map[string]infra.Function{"f": {Callers: "everyone", CPU: "1", Memory: "512Mi", Concurrency: 40,
		MaxInstances: 20}}
	want := map[string]float64{
		"documents written": 30_000 * 10 * 0.18 / 100_000, // 0.54
		"documents read":    30_000 * 5 * 0.06 / 100_000,  // 0.09
		// 4,700 seconds of requests a day, few of them concurrent: 4,575 seconds of an instance.
		"functions": 30*4_574.6*(0.000024+0.0000025/2) + 30_000*0.4/1e6,
		"messages":  30_000 * 2_000 * 40 / math.Pow(2, 40),
		// Each line is stored once, for 400 days.
		"log":                       30_000 * 1_600 * (0.5 + 12.3*0.01) / math.Pow(2, 30),
		"log of accesses to data":   30_000 * 15 * 1_500 * (0.5 + 12.3*0.01) / math.Pow(2, 30),
		"load balancer and its log": 30_000 * (8_192*0.008 + 1_200*0.5) / math.Pow(2, 30),
		"Cloud Armor":               30_000 * 0.75 / 1e6,
		"Cloud KMS":                 30_000 * 2 * 0.03 / 10_000,
		"the model":                 30_000 * (2_000*0.75 + 200*3.75) / 1e6,
	}
	all := month(only(c), f, 1_000)
	if len(all) != len(want) {
		t.Errorf("%d items, want %d", len(all), len(want))
	}
	for _, s := range all {
		if d := s.dollar - want[s.what]; math.Abs(d) > 0.001 {
			t.Errorf("%s: %.4f, want %.4f", s.what, s.dollar, want[s.what])
		}
	}
	if got := bounds(only(c), f)[0]; got.name != "tokens to the Gemini API" || got.runs != 500*1440/5 {
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
		"documents read":          (polls*3 + looks*2) * 0.06 / 100_000,
		"functions":               30*8*3600*(1-math.Exp(-1-0.1/15))*(0.000024+0.0000025/4) + (polls+looks)*0.4/1e6,
		"log":                     (polls + looks) * 1_600 * (0.5 + 12.3*0.01) / math.Pow(2, 30),
		"log of accesses to data": (polls*3 + looks*2) * 1_500 * (0.5 + 12.3*0.01) / math.Pow(2, 30),
		"load balancer, its log, Cloud Armor": (polls + looks) * ((8_192*0.008+1_200*0.5)/math.Pow(2, 30) +
			0.75/1e6),
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

// TestIdle compares the cost without users with a manual calculation, and the warm functions with those of prod.
func TestIdle(t *testing.T) {
	list := infra.List{Parts: map[string]infra.Part{"p": {Secrets: map[string]string{"A": "a", "S": "smtp-url"}}},
		Functions: []infra.Function{{Name: "run", CPU: "1", Memory: "512Mi", Parts: []string{"p"}},
			{Name: "sweep", CPU: "1", Memory: "512Mi", Parts: []string{"p"}}}}
	want := map[string]float64{
		"load balancer":  18, // 720 hours
		"Cloud Armor":    7,
		"warm instances": 2_592_000 * 1.5 * 0.0000025,
		"the sweep": 43_200 * (0.1*(0.000024+0.0000025/2) + 0.4/1e6 + 1_600*(0.5+12.3*0.01)/math.Pow(2, 30) +
			8*0.06/100_000),
		"the tokens' key and the secrets": (4 + 1) * 0.06,
		"images":                          2 * 10 * 0.02 * 0.10,
	}
	all := idle(list, list.Functions, true, []string{"run"})
	if len(all) != len(want) {
		t.Errorf("%d items, want %d", len(all), len(want))
	}
	for _, s := range all {
		if d := s.dollar - want[s.what]; math.Abs(d) > 0.001 {
			t.Errorf("%s: %.4f, want %.4f", s.what, s.dollar, want[s.what])
		}
	}
	text, err := os.ReadFile("../../terraform/prod.tfvars")
	for _, name := range warm {
		if err != nil || !strings.Contains(string(text), name) {
			t.Errorf("prod keeps no instance of %s: %v", name, err)
		}
	}
}

// TestFirstSteps compares the steps and the secrets of a first deployment with those that terraform/bootstrap prints.
func TestFirstSteps(t *testing.T) {
	text, err := os.ReadFile("../../terraform/bootstrap/outputs.tf")
	if err != nil {
		t.Fatal(err)
	}
	steps := regexp.MustCompile(`(?m)^    \d\. `).FindAllString(string(text), -1)
	if len(steps) != firstSteps {
		t.Errorf("bootstrap prints %d steps; want %d", len(steps), firstSteps)
	}
	list, err := infra.Functions()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range secretsOf(list, list.Functions) {
		if !strings.Contains(string(text), "${var.prefix}-"+name+" ") {
			t.Errorf("bootstrap does not print how to add %s", name)
		}
	}
}

// TestMix checks that a mix costs what its kinds cost, and meets the first limit of both.
func TestMix(t *testing.T) {
	f := map[string]infra.Function{"f": {Callers: "everyone", CPU: "1", Memory: "512Mi", Concurrency: 1,
		MaxInstances: 1}}
	one := counts{Kind: mail, Reads: 4, Invocations: []invocation{{Function: "f", ModelCalls: 1}}}
	other := counts{Writes: 2, Invocations: []invocation{{Function: "f", Effects: 1}}}
	const runs = 100_000_000 // so many that instances are full
	mix := []mixed{{one, 0.25}, {other, 0.75}}
	want := sum(month(only(one), f, runs/4)) + sum(month(only(other), f, runs*3/4))
	if got := sum(month(mix, f, runs)); math.Abs(got/want-1) > 0.001 {
		t.Errorf("a mix costs %.0f; want %.0f", got, want)
	}
	if got, want := bounds(mix, f)[0], 86_400/5/(0.25*3.1+0.75*0.9); math.Abs(got.runs-want) > 1 {
		t.Errorf("the first quota is %s, met at %v runs; want %v", got.name, got.runs, want)
	}
	if got := met(withConsoles(bounds(mix, f), 0.001, f["f"]), 2_000); got != "instances of ``" {
		t.Errorf("consoles meet %q; want their function", got)
	}
}
