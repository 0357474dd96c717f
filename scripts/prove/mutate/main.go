// Command mutate proves that the tests notice faults. It takes one mechanism of the design away at a time
// (mutations.go), in an overlay that leaves the tree as it is, runs the tests that must notice, and prints which did:
//
//	go run ./scripts/prove/mutate [-run part-of-a-name]
//
// It exits with an error when a mutation survives, when its text is no longer found in its file, when it does not
// compile, or when a test fails without any mutation or takes too long. A mutation that survives where tests were
// skipped, because what they need is not there, counts as not tried, which is an error with REQUIRE_ALL=1.
//
// With -breaks it takes single checks away (breaks*.go) and shows which cases of scripts/prove/hostile notice:
//
//	go run ./scripts/prove/mutate -breaks [-run part-of-a-name] [-write scripts/prove/hostile/README.md] [-resume breaks.jsonl]
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	only := flag.String("run", "", "only the mutations with this in their name")
	hostile := flag.Bool("breaks", false, "take single checks away, and look which hostile cases notice")
	into := flag.String("write", "", "with -breaks: put the table into this file, between its marks")
	resume := flag.String("resume", "", "with -breaks: a file that keeps what cases noticed, so that it is not tried again")
	flag.Parse()
	do := prove
	if *hostile {
		do = func(root, only string) error { return breakAll(root, only, *into, *resume) }
	}
	if err := do(".", *only); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// prove tries the mutations one after the other and prints a line of the table for each.
func prove(root, only string) error {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	unmutated := map[test]outcome{}
	var failed []error
	fmt.Printf("| mutation | file | caught by | seconds |\n|---|---|---|---|\n")
	for _, m := range mutations {
		if !strings.Contains(m.name, only) {
			continue
		}
		from := time.Now()
		verdict, err := try(root, dir, m, unmutated)
		if err != nil {
			verdict, failed = "**"+err.Error()+"**", append(failed, fmt.Errorf("%s: %w", m.name, err))
		}
		fmt.Printf("| %s | %s | %s | %.0f |\n", m.name, m.file, verdict, time.Since(from).Seconds())
	}
	return errors.Join(failed...)
}

// try returns the tests that caught the mutation.
func try(root, dir string, m mutation, unmutated map[test]outcome) (string, error) {
	overlay, err := m.overlay(root, dir)
	if err != nil {
		return "", err
	}
	if m.isGo() {
		if err := compiles(root, overlay, m); err != nil {
			return "", err
		}
	}
	skipped := false
	for _, t := range m.tests {
		if _, known := unmutated[t]; !known {
			unmutated[t] = t.play(root, overlayFlag{})
		}
		before := unmutated[t]
		if before.failed {
			return "", fmt.Errorf("%s fails without a mutation: %s", t.pkg, before)
		}
		skipped = skipped || before.skipped
		after := t.play(root, m.flag(overlay))
		if after.cut {
			return "", fmt.Errorf("%s took longer than %s, so nothing is known of it", t.pkg, timeout)
		}
		if after.failed {
			return after.String(), nil
		}
	}
	if skipped {
		return notTried()
	}
	return "", errors.New("survives")
}

func notTried() (string, error) {
	const why = "not tried: a test that needs more than is there was skipped"
	if os.Getenv("REQUIRE_ALL") == "1" {
		return "", errors.New(why)
	}
	return why, nil
}

// overlay writes the mutated file, and the list that makes the go command read it in place of the real one.
func (m mutation) overlay(root, dir string) (string, error) {
	patches := make([]patch, len(m.edits))
	for i, e := range m.edits {
		patches[i] = patch{m.file, e.old, e.new}
	}
	return overlay(root, dir, patches)
}

// overlay writes the files as the patches make them, and the list that puts them in place of the real ones.
func overlay(root, dir string, patches []patch) (string, error) {
	texts := map[string][]byte{}
	for _, p := range patches {
		text, known := texts[p.file]
		if !known {
			var err error
			if text, err = os.ReadFile(filepath.Join(root, p.file)); err != nil {
				return "", err
			}
		}
		if n := bytes.Count(text, []byte(p.old)); n != 1 {
			return "", fmt.Errorf("%q is found %d times in %s", p.old, n, p.file)
		}
		texts[p.file] = bytes.Replace(text, []byte(p.old), []byte(p.new), 1)
	}
	replace := map[string]string{}
	for file, text := range texts {
		real, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			return "", err
		}
		replace[real] = filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(replace[real], text, 0o600); err != nil {
			return "", err
		}
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, content, 0o600)
}

// isGo reports whether the go command reads the mutated file. Terraform's are read by the test, which has a flag for it.
func (m mutation) isGo() bool { return strings.HasSuffix(m.file, ".go") }

func (m mutation) flag(overlay string) overlayFlag {
	if m.isGo() {
		return overlayFlag{toGo: "-overlay=" + overlay}
	}
	return overlayFlag{toTest: "-overlay=" + overlay}
}

// overlayFlag is the flag that names an overlay, to the go command or to the test itself; empty without a mutation.
type overlayFlag struct{ toGo, toTest string }

// compiles distinguishes a mutation that does not compile from one that tests catch.
func compiles(root, overlay string, m mutation) error {
	cmd := exec.Command("go", "build", "-overlay", overlay, "./"+filepath.Dir(m.file))
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("does not compile: %s", out)
	}
	return nil
}

// outcome is how a selection of tests went.
type outcome struct {
	failed, skipped bool
	cut             bool     // they took too long, so their failure shows nothing
	by              []string // the tests that failed, without those that only hold others
}

// timeout is how long a selection of tests may take, even on a busy machine.
const timeout = 10 * time.Minute

// String returns the names of up to three of the tests that failed.
func (o outcome) String() string {
	switch n := len(o.by); {
	case n == 0:
		return "the whole package"
	case n > 3:
		return fmt.Sprintf("%s and %d more", strings.Join(o.by[:3], ", "), n-3)
	}
	return strings.Join(o.by, ", ")
}

// play runs the tests and returns the outcome of each.
func (t test) play(root string, overlay overlayFlag) outcome {
	args := []string{"test", "-json", "-count=1", "-timeout=" + timeout.String(), "-run", t.run}
	if overlay.toGo != "" {
		args = append(args, overlay.toGo)
	}
	args = append(append(args, t.pkg), strings.Fields(t.flags)...)
	if overlay.toTest != "" {
		args = append(args, "-args", overlay.toTest)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	return read(out, err != nil)
}

// read reads an outcome from what go test -json prints.
func read(out []byte, failed bool) outcome {
	o := outcome{failed: failed}
	for line := range bytes.Lines(out) {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		o.cut = o.cut || strings.HasPrefix(e.Output, "panic: test timed out after ")
		if e.Test == "" {
			continue
		}
		o.skipped = o.skipped || e.Action == "skip"
		if e.Action == "fail" {
			o.by = append(slices.DeleteFunc(o.by, func(n string) bool { return n == e.Test }), e.Test)
		}
	}
	o.by = slices.DeleteFunc(o.by, func(n string) bool {
		return slices.ContainsFunc(o.by, func(other string) bool { return strings.HasPrefix(other, n+"/") })
	})
	return o
}
