package proof

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/await"
)

// trying returns a proof that calls run.
func trying(run func(context.Context, *Run) error) Proof {
	return Proof{Name: "moon", Tries: "phases", Takes: "a month", About: "It waxes.", Chance: true, Only: "phases",
		Resumes: true, Run: run,
		Flags: func(f *flag.FlagSet) { f.Bool("full", false, "be full") },
		List:  func() ([]Count, error) { return []Count{{4, "quarters"}}, nil },
		Work: func(_ context.Context, o Order) error {
			var name string
			if err := o.Read(&name); err != nil {
				return err
			}
			fmt.Println("hello", name)
			for in := bufio.NewScanner(os.Stdin); in.Scan(); {
				fmt.Println("again", in.Text())
			}
			return nil
		}}
}

func TestExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		run  func(context.Context, *Run) error
		code int
		says string
	}{
		"proven": {"moon", func(_ context.Context, r *Run) error { r.Held("new", ""); return nil }, Proven,
			"1 held"},
		"a finding": {"moon",
			func(_ context.Context, r *Run) error { r.Finding("new", "it is %s", "old"); return nil }, Found,
			"FINDING new: it is old"},
		"unable": {"moon", func(context.Context, *Run) error { return errors.New("clouds") }, Unable, "clouds"},
		"found, unable": {"moon",
			func(_ context.Context, r *Run) error { r.Finding("a", "b"); return errors.New("clouds") }, Found,
			"cut short"},
		"misused": {"moon", func(context.Context, *Run) error { return fmt.Errorf("%w: both", ErrUsage) },
			Misused, "both"},
		"no such flag":  {"moon -moon", nil, Misused, "-moon"},
		"no such proof": {"sun", nil, Misused, `no proof "sun"`},
		"an argument":   {"moon full", nil, Misused, `"full" is not a flag`},
		"selects none": {"moon -only x", func(context.Context, *Run) error { return nil }, Misused,
			"none of the phases"},
		"no name":     {"", nil, Proven, "moon      phases"},
		"help":        {"moon -h", nil, Proven, "It takes a month."},
		"list":        {"moon -list", nil, Proven, "4 quarters"},
		"list of all": {"-list", nil, Proven, "4 quarters"},
	} {
		var out strings.Builder
		code := Main(strings.Fields(c.args), &out, &out, trying(c.run))
		if code != c.code || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: exit code %d, %s", name, code, out.String())
		}
	}
}

// TestReport checks the report as text, as JSON and in a file.
func TestReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report")
	run := func(_ context.Context, r *Run) error {
		for _, phase := range []string{"new", "half", "full"} {
			if r.Selects(phase) {
				r.Held(phase, "in %d", r.Seed)
			}
		}
		r.Skipped("dark", "it is behind")
		r.Count("craters", 2)
		r.Count("craters", 3)
		r.Figure("distance", "384 Mm")
		return nil
	}
	var text, lines strings.Builder
	args := []string{"moon", "-seed", "7", "-only", "n*,full"}
	if code := Main(append(args, "-v", "-report", file), &text, &text, trying(run)); code != Proven {
		t.Fatal(text.String())
	}
	for _, want := range []string{"seed 7", "held new: in 7\n", "skipped dark: it is behind", "5 craters",
		`distance: "384 Mm"`, "moon: 0 findings, 2 held, 1 skipped"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, text.String())
		}
	}
	Main(append(args, "-json"), &lines, io.Discard, trying(run))
	filed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for what, written := range map[string]string{"-json": lines.String(), "-report": string(filed)} {
		var last Line
		for line := range strings.Lines(written) {
			last = Line{}
			if err := json.Unmarshal([]byte(line), &last); err != nil {
				t.Errorf("%s: %s: %v", what, line, err)
			}
		}
		if last.Kind != KindSummary || last.Summary == nil || last.Held != 2 || last.Counts["craters"] != 5 ||
			last.Seed != 7 {
			t.Errorf("%s ends with %+v", what, last)
		}
	}
}

// TestSeed checks that the seed is constant, unless -seed sets a number or asks for a random one, and that it is
// printed.
func TestSeed(t *testing.T) {
	drawn := map[uint64]bool{}
	for _, c := range []struct {
		args []string
		want uint64 // 0: any
		code int
	}{
		{nil, Seed, Proven}, {[]string{"-seed", "7"}, 7, Proven}, {[]string{"-seed", "random"}, 0, Proven},
		{[]string{"-seed", "random"}, 0, Proven}, {[]string{"-seed", "0"}, 0, Misused},
		{[]string{"-seed", "lucky"}, 0, Misused},
	} {
		var out strings.Builder
		var seed uint64
		code := Main(append([]string{"moon"}, c.args...), &out, &out,
			trying(func(_ context.Context, r *Run) error { seed = r.Seed; return nil }))
		if code != c.code || c.want != 0 && seed != c.want {
			t.Errorf("%v: exit code %d with seed %d", c.args, code, seed)
		}
		if said := fmt.Sprintf("seed %d\n", seed); code == Proven && !strings.HasPrefix(out.String(), said) {
			t.Errorf("%v: it does not begin with %q: %s", c.args, said, out.String())
		}
		if code == Proven {
			drawn[seed] = true
		}
	}
	if len(drawn) != 4 {
		t.Errorf("two random seeds are the same: %v", drawn)
	}
}

// TestArguments puts arguments before, between and after the flags.
func TestArguments(t *testing.T) {
	var got []string
	p := trying(func(_ context.Context, r *Run) error { got = r.Args; return nil })
	p.Args = "craters"
	var out strings.Builder
	if code := Main(strings.Fields("moon tycho -seed 7 kepler -full"), &out, &out, p); code != Proven ||
		!slices.Equal(got, []string{"tycho", "kepler"}) {
		t.Errorf("exit code %d with %q: %s", code, got, out.String())
	}
}

func TestResume(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kept")
	tries := 0
	run := func(_ context.Context, r *Run) error {
		var came []string
		if r.Before("new 1", &came) {
			r.Held("new", "%s", came)
			return nil
		}
		tries++
		return r.Keep("new 1", []string{"dark"})
	}
	for range 2 {
		if code := Main([]string{"moon", "-resume", file}, io.Discard, os.Stderr, trying(run)); code != Proven {
			t.Fatal(code)
		}
	}
	if tries != 1 {
		t.Errorf("%d tries", tries)
	}
}

func TestWorker(t *testing.T) {
	heard := make(chan string, 4)
	w, err := Start("", "moon", "Ana", os.Stderr, func(line string) { heard <- line })
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Tell("and %s", "Bob"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"hello Ana", "again and Bob"} {
		select {
		case line := <-heard:
			if line != want {
				t.Errorf("got %q, want %q", line, want)
			}
		case <-time.After(await.Most):
			t.Fatal("no output")
		}
	}
	if err := w.Stop(); err != nil {
		t.Error(err)
	}
	if w, err = Start("", "moon", "Eve", os.Stderr, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Kill(); err != nil {
		t.Error(err)
	}
}
