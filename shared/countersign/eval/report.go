package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/countersign-run/countersign/shared/base/visible"
)

// Report has the results of an evaluation.
type Report struct {
	Began    time.Time    `json:"began"`
	Agent    string       `json:"agent"`
	Cases    []CaseResult `json:"cases"`
	Problems []string     `json:"problems,omitempty"` // mistakes in files
	Skipped  []string     `json:"skipped,omitempty"`  // parts of files that are not evaluated
}

// CaseResult has the runs of a case.
type CaseResult struct {
	File   string      `json:"file"`
	Name   string      `json:"name"`
	Passes float64     `json:"passes"` // share of the runs that must pass
	Runs   []RunResult `json:"runs"`
}

// RunResult is one run of a case.
type RunResult struct {
	Passed   bool             `json:"passed"`
	Error    string           `json:"error,omitempty"` // why the conversation did not end, or was not judged
	Measures map[string]Score `json:"measures,omitempty"`
	Turns    []Exchange       `json:"turns,omitempty"`

	cutOff bool // the evaluation was cancelled before the end of the run
}

// Score is a measure of a run.
type Score struct {
	Score       float64 `json:"score"`
	Need        float64 `json:"need"`          // least score that passes
	Why         string  `json:"why,omitempty"` // the first difference from the expectation
	NotMeasured string  `json:"notMeasured,omitempty"`
}

// ID returns the file and the name.
func (c CaseResult) ID() string { return c.File + "/" + c.Name }

// PassRate returns the share of the runs that passed.
func (c CaseResult) PassRate() float64 {
	passed := 0
	for _, r := range c.Runs {
		if r.Passed {
			passed++
		}
	}
	return float64(passed) / float64(max(len(c.Runs), 1))
}

// Passed reports whether enough runs passed.
func (c CaseResult) Passed() bool { return c.PassRate() >= c.Passes }

// Mean returns the mean score of a measure over the runs that have it, and whether any has.
func (c CaseResult) Mean(measure string) (mean float64, ok bool) {
	sum, n := 0.0, 0
	for _, r := range c.Runs {
		if s, has := r.Measures[measure]; has && s.NotMeasured == "" {
			sum += s.Score
			n++
		}
	}
	return sum / float64(max(n, 1)), n > 0
}

// Passed reports whether all cases passed and no file has a mistake.
func (r *Report) Passed() bool {
	return len(r.Problems) == 0 && !slices.ContainsFunc(r.Cases, func(c CaseResult) bool { return !c.Passed() })
}

// Table writes the results: a line for each case, why cases failed, and the parts that were not evaluated.
func (r *Report) Table(w io.Writer) error {
	var out strings.Builder
	t := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	used := slices.DeleteFunc(slices.Clone(Measures), func(m string) bool { return !r.has(m) })
	fmt.Fprintln(t, strings.Join(append([]string{"case", "passed", "needs"}, used...), "\t"))
	passed, unmeasured := 0, 0
	for _, c := range r.Cases {
		if c.Passed() {
			passed++
			if !slices.ContainsFunc(Measures, func(m string) bool { _, ok := c.Mean(m); return ok }) {
				unmeasured++
			}
		}
		fmt.Fprintf(t, "%s\t%.0f%% of %d\t%.0f%%", oneLine(c.ID()), 100*c.PassRate(), len(c.Runs), 100*c.Passes)
		for _, m := range used {
			mean, ok := c.Mean(m)
			if !ok {
				fmt.Fprint(t, "\t-")
				continue
			}
			fmt.Fprintf(t, "\t%.2f", mean)
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // a strings.Builder does not fail
	fmt.Fprintf(&out, "\n%d of %d cases passed", passed, len(r.Cases))
	if unmeasured > 0 {
		fmt.Fprintf(&out, ", and %d of these without a measure", unmeasured)
	}
	out.WriteString("\n")
	for _, c := range r.Cases {
		c.why(&out)
	}
	section(&out, "Mistakes in files:", r.Problems)
	section(&out, "Not evaluated:", append(slices.Clone(r.Skipped), r.notMeasured()...))
	_, err := io.WriteString(w, out.String())
	return err
}

// has reports whether a case has the measure.
func (r *Report) has(measure string) bool {
	return slices.ContainsFunc(r.Cases, func(c CaseResult) bool { _, ok := c.Mean(measure); return ok })
}

// why writes what the first failed run of a case lacks.
func (c CaseResult) why(out *strings.Builder) {
	i := slices.IndexFunc(c.Runs, func(r RunResult) bool { return !r.Passed })
	if i < 0 {
		return
	}
	r := c.Runs[i]
	fmt.Fprintf(out, "\n%s, run %d:\n", oneLine(c.ID()), i+1)
	if r.Error != "" {
		fmt.Fprintf(out, "  error: %s\n", oneLine(r.Error))
	}
	for _, m := range Measures {
		if s, ok := r.Measures[m]; ok && s.NotMeasured == "" && s.Score < s.Need {
			fmt.Fprintf(out, "  %s: %.2f, needs %.2f. %s\n", m, s.Score, s.Need, oneLine(s.Why))
		}
	}
}

// notMeasured names the measures that were left out, and the cases without any.
func (r *Report) notMeasured() (all []string) {
	for _, c := range r.Cases {
		if len(c.Runs) > 0 && c.Runs[0].Error == "" && len(c.Runs[0].Measures) == 0 {
			all = append(all, c.ID()+": it has no expectations, so each run without an error passes")
		}
		for _, m := range Measures {
			if len(c.Runs) > 0 && c.Runs[0].Measures[m].NotMeasured != "" {
				all = append(all, c.ID()+": "+m+": "+c.Runs[0].Measures[m].NotMeasured)
			}
		}
	}
	return all
}

func section(out *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n", title)
	for _, l := range lines {
		fmt.Fprintf(out, "  %s\n", oneLine(l))
	}
}

// Write writes the report as JSON. The file contains the conversations; only its owner can read it.
func (r *Report) Write(name string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(data, '\n'), 0o600)
}

// maxReport limits a report that is read, in bytes.
const maxReport = 256 << 20

// ReadReport reads a report that [Report.Write] wrote.
func ReadReport(name string) (*Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var r Report
	if err := json.NewDecoder(io.LimitReader(f, maxReport)).Decode(&r); err != nil {
		return nil, fmt.Errorf("%s: not the results of an evaluation: %w", name, err)
	}
	return &r, nil
}

// least is the smallest change of a score that is reported.
const least = 0.005

// Compare writes what got worse, what got better, and which cases are new or gone since the last report.
func (r *Report) Compare(w io.Writer, last *Report) error {
	before := map[string]CaseResult{}
	for _, c := range last.Cases {
		before[c.ID()] = c
	}
	var worse, better, others []string
	for _, c := range r.Cases {
		was, known := before[c.ID()]
		delete(before, c.ID())
		if !known {
			others = append(others, "new: "+c.ID())
			continue
		}
		down, up := c.changes(was)
		if len(down) > 0 {
			worse = append(worse, c.ID()+": "+strings.Join(down, ", "))
		}
		if len(up) > 0 {
			better = append(better, c.ID()+": "+strings.Join(up, ", "))
		}
	}
	for _, c := range last.Cases {
		if _, gone := before[c.ID()]; gone {
			others = append(others, "no longer there: "+c.ID())
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "\nSince %s (%s):\n", last.Began.Format("2006-01-02 15:04"), oneLine(last.Agent))
	if len(worse)+len(better)+len(others) == 0 {
		out.WriteString("  no difference\n")
	}
	section(&out, "Worse:", worse)
	section(&out, "Better:", better)
	section(&out, "Other cases:", others)
	_, err := io.WriteString(w, out.String())
	return err
}

// changes returns the values that are lower and those that are higher than before.
func (c CaseResult) changes(was CaseResult) (down, up []string) {
	note := func(what string, old, now float64, format string) {
		text := fmt.Sprintf("%s "+format+" → "+format, what, old, now)
		if now < old {
			down = append(down, text)
		} else {
			up = append(up, text)
		}
	}
	if old, now := was.PassRate(), c.PassRate(); math.Abs(old-now) >= least {
		note("passed", 100*old, 100*now, "%.0f%%")
	}
	for _, m := range Measures {
		old, had := was.Mean(m)
		now, has := c.Mean(m)
		if had && has && math.Abs(old-now) >= least {
			note(m, old, now, "%.2f")
		}
	}
	return down, up
}

// oneLine returns a text of the model or of a file on one line, with invisible characters made visible.
func oneLine(s string) string {
	shown, _ := visible.Line(strings.Join(strings.Fields(s), " "))
	return shown
}
