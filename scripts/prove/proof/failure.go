package proof

import (
	"regexp"
	"slices"
	"strings"
)

// Failure is a failed test, with the first lines of its output. If it has no test name, it is a failure of the whole
// package.
type Failure struct {
	Test  string
	Lines []string
}

// most is the maximum number of lines of a failure.
const most = 20

var (
	failed = regexp.MustCompile(`^\s*--- FAIL: (\S+) \(`)
	ends   = regexp.MustCompile(`^\s*--- [A-Z]+: |^(PASS|FAIL|ok|exit status)\b|^-test\.shuffle `)
	broken = regexp.MustCompile(`^(panic: |fatal error: |WARNING: DATA RACE|a goroutine outlives )`)
)

// Failures finds the failures in the output of a package's tests. A test that failed only because of its subtests is
// omitted, unless it has output.
func Failures(printed string) (all []Failure) {
	lines := strings.Split(strings.TrimRight(printed, "\n"), "\n")
	open := false // further lines belong to the last failure
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

// Text returns the lines as one string.
func (f Failure) Text() string { return strings.Join(f.Lines, "\n") }
