// Package mutate checks that the tests notice faults. It removes one mechanism of the design at a time, in an overlay
// that leaves the source tree unchanged, and runs the tests that must notice. A finding is a mutation that survives,
// does not compile or no longer matches its file, or a test that fails without a mutation or takes too long. With
// -breaks it removes single checks, and runs the cases of scripts/prove/hostile.
package mutate

import (
	"bytes"
	"context"
	"crypto/sha256"
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

	"github.com/countersign-run/countersign/scripts/prove/proof"
)

// Proof is the command that scripts/prove runs.
func Proof() proof.Proof {
	var breaks bool
	var into string
	var planted int
	return proof.Proof{
		Name: "mutate", Chance: true, Only: "mutations or breaks", Resumes: true, Each: true, List: list,
		Tries: "removes mechanisms, deployment rules and checks: a test or hostile case must notice",
		Takes: "half an hour; at least as long with -breaks; a minute for each fault of -sample; " +
			"-only selects some",
		About: `A mutation that survives where tests were skipped, because what they need is not there, is skipped too, and is a
finding with REQUIRE_ALL=1.`,
		Flags: func(f *flag.FlagSet) {
			f.BoolVar(&breaks, "breaks", false, "remove single checks, and report which hostile cases notice")
			f.IntVar(&planted, "sample", 0, "plant a `number` of faults that compile, which -seed selects in the\n"+
				"product's code: negated conditions, dropped calls, swapped arguments, changed constants")
			f.StringVar(&into, "write", "", "with -breaks: put the table into this `file`, between its marks")
		},
		Run: func(ctx context.Context, r *proof.Run) error {
			l, err := read()
			if err != nil {
				return err
			}
			if planted > 0 {
				return sample(ctx, r, planted, ".")
			}
			if breaks {
				return breakAll(ctx, r, l, ".", into)
			}
			return mutateAll(ctx, r, slices.Concat(l.mechanisms, l.rules), ".")
		},
	}
}

func list() ([]proof.Count, error) {
	l, err := read()
	return []proof.Count{{N: len(l.mechanisms), What: "mechanisms taken away"},
		{N: len(l.rules), What: "rules of the deployment changed"},
		{N: len(l.breaks), What: "single checks taken away (-breaks)"}}, err
}

// mutateAll tries the mutations, one after the other.
func mutateAll(ctx context.Context, r *proof.Run, mutations []mutation, root string) error {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	unmutated := map[test]proof.Tested{}
	for _, m := range mutations {
		var by string
		if !r.Selects(m.name) || ctx.Err() != nil {
			continue
		}
		if r.Before(m.key(), &by) {
			r.Held(m.name, "%s was caught by %s before", m.file(), by)
			continue
		}
		from := time.Now()
		switch by, err = try(ctx, root, dir, m, unmutated); {
		case errors.Is(err, errNotTried) && os.Getenv("REQUIRE_ALL") != "1":
			r.Skipped(m.name, "%v", err)
		case err != nil:
			r.Finding(m.name, "%s: %v", m.file(), err)
		default:
			r.Held(m.name, "%s is caught by %s in %.0f s", m.file(), by, time.Since(from).Seconds())
			if err := r.Keep(m.key(), by); err != nil {
				return err
			}
		}
	}
	return nil
}

// key identifies the mutation in its present form.
func (m mutation) key() string {
	return fmt.Sprintf("%s %x", m.name, sha256.Sum256(fmt.Append(nil, m.patches)))
}

// errNotTried means that a mutation survived only because tests were skipped.
var errNotTried = errors.New("a test was skipped because something it needs is missing")

// try returns the tests that caught the mutation.
func try(ctx context.Context, root, dir string, m mutation, unmutated map[test]proof.Tested) (string, error) {
	overlay, err := overlay(root, dir, m.patches)
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
			unmutated[t] = t.play(ctx, root, overlayFlag{})
		}
		before := unmutated[t]
		if before.Failed {
			return "", fmt.Errorf("%s fails without a mutation: %s: %s", t.pkg, before, before.Last())
		}
		skipped = skipped || before.Skipped
		after := t.play(ctx, root, m.flag(overlay))
		if after.Cut {
			return "", fmt.Errorf("%s took longer than %s, so its result is unknown", t.pkg, proof.TestTime)
		}
		switch {
		case len(after.By) > 0:
			return after.String(), nil
		case after.Failed: // for another reason, such as a lack of memory
			return "", fmt.Errorf("%s fails, but none of its tests fails: %s", t.pkg, after.Last())
		}
	}
	if skipped {
		return "", errNotTried
	}
	return "", errors.New("survives")
}

// file returns the first file that the mutation changes.
func (m mutation) file() string { return m.patches[0].file }

// overlay writes the patched files, and the list that substitutes them for the real ones.
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
			return "", fmt.Errorf("%q occurs %d times in %s", p.old, n, p.file)
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

// isGo reports whether the go command reads the mutated file: a Go file, or a script or page that a package embeds. The
// Terraform tests read their files themselves, and have a flag for the overlay.
func (m mutation) isGo() bool { return !strings.HasPrefix(filepath.Ext(m.file()), ".tf") }

func (m mutation) flag(overlay string) overlayFlag {
	if m.isGo() {
		return overlayFlag{toGo: "-overlay=" + overlay}
	}
	return overlayFlag{toTest: "-overlay=" + overlay}
}

// overlayFlag is the flag that names an overlay, for the go command or for the test itself. It is empty without a
// mutation.
type overlayFlag struct{ toGo, toTest string }

// compiles distinguishes a mutation that does not compile from one that tests catch. Web pages are not compiled.
func compiles(root, overlay string, m mutation) error {
	if filepath.Ext(m.file()) == ".js" {
		return nil
	}
	cmd := exec.Command("go", "build", "-overlay", overlay, "./"+filepath.Dir(m.file()))
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("does not compile: %s", out)
	}
	return nil
}

// play runs the tests.
func (t test) play(ctx context.Context, root string, overlay overlayFlag) proof.Tested {
	args := []string{"-run", t.run}
	if overlay.toGo != "" {
		args = append(args, overlay.toGo)
	}
	args = append(append(args, t.pkg), strings.Fields(t.flags)...)
	if overlay.toTest != "" {
		args = append(args, "-args", overlay.toTest)
	}
	return proof.GoTest(ctx, root, args...)
}
