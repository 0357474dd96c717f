package proof

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// The kinds of a Line.
const (
	KindFinding = "finding" // what is to be proven does not hold
	KindHeld    = "held"
	KindSkipped = "skipped" // it was not tried
	KindNote    = "note"    // for a reader
	KindSummary = "summary" // the last line
)

// Line is a line of a report. Of is the name of what was tried, as -only selects it.
type Line struct {
	Kind string `json:"kind"`
	Of   string `json:"of,omitempty"`
	Text string `json:"text,omitempty"`
	*Summary
}

// Summary is the last line of a report.
type Summary struct {
	Proof    string         `json:"proof"`
	Commit   string         `json:"commit,omitempty"`
	Seed     uint64         `json:"seed,omitempty"`
	Held     int            `json:"held"`
	Findings int            `json:"findings"`
	Skipped  int            `json:"skipped"`
	Counts   map[string]int `json:"counts,omitempty"`
	Figures  map[string]any `json:"figures,omitempty"`
	Seconds  float64        `json:"seconds"`
	Error    string         `json:"error,omitempty"` // why it could not be run to its end
}

// Run is one run of a proof: what it was asked to do, and its report. Its methods may be called concurrently.
type Run struct {
	Seed    uint64   // of all that chance chooses
	Args    []string // after the flags and between them
	Verbose bool

	proof string
	only  *regexp.Regexp // nil: everything
	began time.Time
	out   io.Writer
	json  bool
	file  *os.File // of -report, or nil
	kept  *kept

	mu      sync.Mutex
	summary Summary
	failed  error // of writing
}

// pattern returns what matches one of the names, in which * is any text; nil where there are none.
func pattern(names string) (*regexp.Regexp, error) {
	if names == "" {
		return nil, nil
	}
	var any []string
	for name := range strings.SplitSeq(names, ",") {
		any = append(any, strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(name)), `\*`, ".*"))
	}
	return regexp.Compile("^(" + strings.Join(any, "|") + ")$")
}

// Selects reports whether -only selects the name; without -only everything is selected.
func (r *Run) Selects(name string) bool { return r.only == nil || r.only.MatchString(name) }

// Finding reports what does not hold: the proof fails.
func (r *Run) Finding(of, format string, args ...any) { r.line(KindFinding, of, format, args...) }

// Held counts what held; it is printed with -v.
func (r *Run) Held(of, format string, args ...any) { r.line(KindHeld, of, format, args...) }

// Skipped counts what was not tried, and why; it is printed with -v.
func (r *Run) Skipped(of, format string, args ...any) { r.line(KindSkipped, of, format, args...) }

// Note prints lines for a reader: a table, or how far it is.
func (r *Run) Note(format string, args ...any) { r.line(KindNote, "", format, args...) }

// Count adds to a count of the summary.
func (r *Run) Count(what string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.summary.Counts == nil {
		r.summary.Counts = map[string]int{}
	}
	r.summary.Counts[what] += n
}

// Counted returns a count.
func (r *Run) Counted(what string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.summary.Counts[what]
}

// Figure sets a measured figure of the summary.
func (r *Run) Figure(name string, value any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.summary.Figures == nil {
		r.summary.Figures = map[string]any{}
	}
	r.summary.Figures[name] = value
}

// Findings returns how many there are so far.
func (r *Run) Findings() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.summary.Findings
}

// tried reports whether anything was.
func (r *Run) tried() bool { return r.summary.Held+r.summary.Findings+r.summary.Skipped > 0 }

func (r *Run) line(kind, of, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := Line{Kind: kind, Of: of, Text: fmt.Sprintf(format, args...)}
	switch kind {
	case KindFinding:
		r.summary.Findings++
		r.print(l, fmt.Sprintf("FINDING %s: %s", of, l.Text))
	case KindNote:
		r.print(l, l.Text)
	default:
		if kind == KindHeld {
			r.summary.Held++
		} else {
			r.summary.Skipped++
		}
		text := ""
		if r.Verbose {
			text = strings.TrimSuffix(fmt.Sprintf("%s %s: %s", kind, of, l.Text), ": ")
		}
		r.print(l, text)
	}
}

// print prints the line as text, unless that is empty, or as JSON. The mutex is held.
func (r *Run) print(l Line, text string) {
	var object bytes.Buffer
	enc := json.NewEncoder(&object)
	enc.SetEscapeHTML(false)
	r.keep(enc.Encode(l))
	if r.file != nil {
		_, err := r.file.Write(object.Bytes())
		r.keep(err)
	}
	switch {
	case r.json:
		_, err := r.out.Write(object.Bytes())
		r.keep(err)
	case text != "":
		_, err := fmt.Fprintln(r.out, text)
		r.keep(err)
	}
}

// keep keeps the first error of writing.
func (r *Run) keep(err error) {
	if r.failed == nil {
		r.failed = err
	}
}

// summarize prints the last line. err is why the proof could not be run to its end, or nil.
func (r *Run) summarize(err error) {
	commit := commit()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.summary
	s.Proof, s.Commit, s.Seed = r.proof, commit, r.Seed
	s.Seconds = time.Since(r.began).Round(time.Millisecond).Seconds()
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(s.Counts)) {
		fmt.Fprintf(&b, "%9d %s\n", s.Counts[what], what)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Figures)) {
		value, err := json.Marshal(s.Figures[name])
		r.keep(err)
		fmt.Fprintf(&b, "%s: %s\n", name, value)
	}
	fmt.Fprintf(&b, "%s: %d findings, %d held, %d skipped, in %.0f s", s.Proof, s.Findings, s.Held, s.Skipped,
		s.Seconds)
	if s.Seed != 0 {
		fmt.Fprintf(&b, ", seed %d", s.Seed)
	}
	if commit != "" {
		fmt.Fprintf(&b, ", at %s", commit)
	}
	if err != nil {
		s.Error = err.Error()
		b.WriteString(", cut short")
	}
	r.print(Line{Kind: KindSummary, Summary: s}, b.String())
}

// commit returns what is checked out; empty where that is not known.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// close closes the files, and returns the first error of writing.
func (r *Run) close() error {
	if r.file != nil {
		r.keep(r.file.Close())
	}
	return r.failed
}

// Trial returns a Run for a test that looks at what it reports: everything is selected, and the lines go to out.
func Trial(name string, seed uint64, out io.Writer) *Run {
	return &Run{Seed: seed, proof: name, out: out, began: time.Now()}
}
