package mutate

import (
	"embed"
	"fmt"
	"path"
	"strings"
)

// mutation removes or changes something. Its tests or hostile cases must notice.
type mutation struct {
	name    string
	patches []patch
	tests   []test // at least one must fail; none: a hostile case must
}

// patch replaces a text that occurs once in its file, after the earlier patches.
type patch struct{ file, old, new string }

// test is a selection of one package's tests, with further flags.
type test struct{ pkg, run, flags string }

// quietly stops rapid from writing a file for each failure, and limits its search for a shorter failing sequence.
const quietly = "-rapid.nofailfile -rapid.shrinktime=1s -rapid.seed=1"

// model is the model test, with the tests that belong to it. A few hundred sequences are enough to notice a missing
// mechanism.
var model = test{"./shared/engine/loop",
	"Test(Model|Scenarios|KilledAtEveryCommit|ResumeRace|ResolveRace)/embedded",
	quietly + " -sequences=500"}

// files are the lists of mutations. "# " begins a mutation, "test: " names tests, and a path names the file to change.
// The lines that begin with "-" are a text in the file, and the lines that begin with "+" replace it.
//
//go:embed *.txt
var files embed.FS

// listed holds all mutations and breaks, once read.
type listed struct {
	mechanisms, rules, breaks []mutation
	near                      map[string]string // kinds of hostile cases near a file or a directory
}

func read() (l listed, err error) {
	for _, f := range []struct {
		name string
		into *[]mutation
	}{{"mechanisms", &l.mechanisms}, {"rules", &l.rules}, // and, as a request meets the checks:
		{"edge", &l.breaks}, {"identity", &l.breaks}, {"runs", &l.breaks}, {"forms", &l.breaks}} {
		if err := eachLine(f.name, reader(f.into)); err != nil {
			return l, err
		}
	}
	l.near = map[string]string{}
	err = eachLine("near", func(line string) error {
		words := strings.Fields(line)
		if len(words) != 2 {
			return fmt.Errorf("expected a path and kinds of cases")
		}
		l.near[words[0]] = words[1]
		return nil
	})
	return l, err
}

// eachLine calls do with each line of a file that is neither empty nor a comment.
func eachLine(name string, do func(string) error) error {
	text, err := files.ReadFile(name + ".txt")
	if err != nil {
		return err
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if line = strings.TrimSuffix(line, "\n"); line == "" || strings.HasPrefix(line, "// ") {
			continue
		}
		if err := do(line); err != nil {
			return fmt.Errorf("%s.txt:%d: %w", name, n, err)
		}
	}
	return nil
}

// reader returns a function that adds the mutations in a file's lines.
func reader(into *[]mutation) func(line string) error {
	file, before := "", ' '
	return func(line string) error {
		kind, after := rune(line[0]), before
		before = kind
		if name, begins := strings.CutPrefix(line, "# "); begins {
			*into, file = append(*into, mutation{name: name}), ""
			return nil
		}
		if len(*into) == 0 {
			return fmt.Errorf("%q comes before any mutation", line)
		}
		m := &(*into)[len(*into)-1]
		selected, isTest := strings.CutPrefix(line, "test: ")
		switch {
		case isTest:
			m.tests = append(m.tests, testOf(selected))
		case kind == '-' && file != "" && after == '-':
			m.last().old += "\n" + line[1:]
		case kind == '-' && file != "":
			m.patches = append(m.patches, patch{file: file, old: line[1:]})
		case kind == '+' && after == '+':
			m.last().new += "\n" + line[1:]
		case kind == '+' && after == '-':
			m.last().new = line[1:]
		case kind != '-' && kind != '+':
			file = line
			if strings.HasPrefix(line, "terraform/") { // the directory's tests
				m.tests = []test{{"./scripts/terraform", "TestTerraform/^" + path.Base(path.Dir(line)) + "$", ""}}
			}
		default:
			return fmt.Errorf("%q belongs to no text", line)
		}
		return nil
	}
}

func (m *mutation) last() *patch { return &m.patches[len(m.patches)-1] }

// testOf parses a selection of tests: model, or a package, a pattern and flags.
func testOf(words string) test {
	if words == "model" {
		return model
	}
	pkg, rest, _ := strings.Cut(words, " ")
	run, flags, _ := strings.Cut(rest, " ")
	return test{pkg, run, strings.ReplaceAll(flags, "quietly", quietly)}
}
