package proof

import (
	"regexp"
	"slices"
	"strings"
)

// Failure is a test that failed, and the first lines that it printed about that. Without a test's name it is of the
// whole package.
type Failure struct {
	Test  string
	Lines []string
}

// most is how many lines of a failure are kept.
const most = 20

var (
	failed = regexp.MustCompile(`^\s*--- FAIL: (\S+) \(`)
	ends   = regexp.MustCompile(`^\s*--- [A-Z]+: |^(PASS|FAIL|ok|exit status)\b|^-test\.shuffle `)
	broken = regexp.MustCompile(`^(panic: |fatal error: |WARNING: DATA RACE|a goroutine outlives )`)
)

// Failures reads what the tests of a package printed, of which some have failed. A test whose subtests failed is not
// among them unless it says something itself.
func Failures(printed string) (all []Failure) {
	lines := strings.Split(strings.TrimRight(printed, "\n"), "\n")
	open := false // the last failure goes on
	for _, line := range lines {
		switch name := failed.FindStringSubmatch(line); {
		case name != nil:
			all, open = append(all, Failure{Test: name[1]}), true
		case ends.MatchString(line):
			open = false
		case open && len(all[len(all)-1].Lines) < most:
			all[len(all)-1].Lines = append(all[len(all)-1].Lines, line)
		}
	}
	all = slices.DeleteFunc(all, func(f Failure) bool {
		return len(f.Lines) == 0 && slices.ContainsFunc(all, func(other Failure) bool {
			return strings.HasPrefix(other.Test, f.Test+"/")
		})
	})
	if len(all) > 0 {
		return all
	}
	from := slices.IndexFunc(lines, broken.MatchString)
	if from < 0 {
		from = max(0, len(lines)-most)
	}
	return []Failure{{Lines: lines[from:min(len(lines), from+most)]}}
}

// Text returns the lines as one text.
func (f Failure) Text() string { return strings.Join(f.Lines, "\n") }
