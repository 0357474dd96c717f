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
	KindFinding = "finding" // a guarantee does not hold
	KindHeld    = "held"
	KindSkipped = "skipped" // not tried
	KindNote    = "note"    // information for the reader
	KindSummary = "summary" // the last line
)

// Line is a line of a report. Of is the name of the try, which -only matches.
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
	Error    string         `json:"error,omitempty"` // why the proof did not finish
}

// Run is one run of a proof: its options and its report. Its methods are safe for concurrent use.
type Run struct {
	Seed    uint64   // determines all random choices
	Args    []string // the arguments, without the flags
	Verbose bool

	proof string
	only  *regexp.Regexp // nil matches everything
	began time.Time
	out   io.Writer
	json  bool
	file  *os.File // the file of -report, or nil
	kept  *kept

	mu      sync.Mutex
	summary Summary
	failed  error // the first error of writing
}

// pattern returns an expression that matches any of the names, in which * stands for any text. It returns nil for no
// names.
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

// Selects reports whether -only matches the name. Without -only, it always does.
func (r *Run) Selects(name string) bool { return r.only == nil || r.only.MatchString(name) }

// Finding reports a guarantee that does not hold. The proof fails.
func (r *Run) Finding(of, format string, args ...any) { r.line(KindFinding, of, format, args...) }

// Held counts a try that held. The line is printed with -v.
func (r *Run) Held(of, format string, args ...any) { r.line(KindHeld, of, format, args...) }

// Skipped counts a try that was skipped, with the reason. The line is printed with -v.
func (r *Run) Skipped(of, format string, args ...any) { r.line(KindSkipped, of, format, args...) }

// Note prints lines for the reader, such as a table or the progress.
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

// Counted returns a count of the summary.
func (r *Run) Counted(what string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.summary.Counts[what]
}

// Figure sets a measured value in the summary.
func (r *Run) Figure(name string, value any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.summary.Figures == nil {
		r.summary.Figures = map[string]any{}
	}
	r.summary.Figures[name] = value
}

// Findings returns the number of findings so far.
func (r *Run) Findings() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.summary.Findings
}

// tried reports whether anything was tried or skipped.
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

// print prints the line as JSON or, unless the text is empty, as text. The caller holds the mutex.
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

// keep records the first error of writing.
func (r *Run) keep(err error) {
	if r.failed == nil {
		r.failed = err
	}
}

// summarize prints the last line. err is the reason why the proof did not finish, or nil.
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

// commit returns the checked-out commit, or an empty string if it is unknown.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// close closes the file of -report, and returns the first error of writing.
func (r *Run) close() error {
	if r.file != nil {
		r.keep(r.file.Close())
	}
	return r.failed
}

// Trial returns a Run for a test. Everything is selected, and the lines go to out.
func Trial(name string, seed uint64, out io.Writer) *Run {
	return &Run{Seed: seed, proof: name, out: out, began: time.Now()}
}
