package mutate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// all returns all mutations and breaks.
func all(t *testing.T) listed {
	t.Helper()
	l, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestMutationTexts checks the list against the code. Every text must occur once, and its replacement must pass the
// type checker; in a short run, every fifth replacement. The command itself checks whether the tests catch the
// mutations, which takes minutes.
func TestMutationTexts(t *testing.T) {
	realpart.Long(t, "checks the types of two hundred changed packages")
	l := all(t)
	mutations := slices.Concat(l.mechanisms, l.rules)
	check := newChecker(t, mutations)
	for i, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			list, err := overlay("../../..", t.TempDir(), m.patches)
			if err == nil && i%realpart.Trials(5, 1) == 0 {
				err = check.overlay(list)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSelections checks that each word of a selection of tests is part of a name of its package's tests. Without such a
// test, no test could catch the mutation.
func TestSelections(t *testing.T) {
	l := all(t)
	word, names := regexp.MustCompile(`[A-Z]\w+`), map[string]string{}
	for _, m := range slices.Concat(l.mechanisms, l.rules, l.breaks) {
		for _, s := range m.tests {
			if names[s.pkg] == "" {
				names[s.pkg] = testNames(t, s.pkg)
			}
			for either := range strings.SplitSeq(s.run, "|") {
				first, _, _ := strings.Cut(either, "/")
				for _, w := range word.FindAllString(first, -1) {
					if !strings.Contains(names[s.pkg], w) {
						t.Errorf("%s: no test of %s has %s in its name", m.name, s.pkg, w)
					}
				}
			}
		}
	}
}

// testNames returns the names of all tests of a package, one on each line.
func testNames(t *testing.T, pkg string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../..", pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		file, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				names = append(names, f.Name.Name)
			}
		}
	}
	return strings.Join(names, "\n")
}

// TestMutationOfMissingText checks that a missing text is reported, and does not count as a caught mutation.
func TestMutationOfMissingText(t *testing.T) {
	gone := []patch{{"shared/engine/loop/act.go", "this is nowhere", ""}}
	if _, err := overlay("../../..", t.TempDir(), gone); err == nil {
		t.Error("a text that is not in the file was replaced")
	}
}

// TestBreakTexts checks the list of breaks against the code. Every text must occur once, and its replacement must pass
// the type checker. The command itself checks whether they are noticed.
func TestBreakTexts(t *testing.T) {
	realpart.Long(t, "checks the types of three hundred changed packages")
	named, breaks := map[string]bool{}, all(t).breaks
	check := newChecker(t, breaks)
	for i, b := range breaks {
		if named[b.name] {
			t.Errorf("duplicate name %q", b.name)
		}
		named[b.name] = true
		list, err := overlay("../../..", t.TempDir(), b.patches)
		if err == nil && i%realpart.Trials(5, 1) == 0 {
			err = check.overlay(list)
		}
		if err != nil {
			t.Errorf("%s: %v", b.name, err)
		}
	}
	if len(breaks) < 150 {
		t.Errorf("there are %d", len(breaks))
	}
}

// checker checks the types of packages with replaced files. Building each package would take minutes. Their imports are
// compiled and read once.
type checker struct {
	files   map[string][]string // by directory
	imports types.Importer
}

// newChecker returns a checker for the packages that the mutations change.
func newChecker(t *testing.T, mutations []mutation) checker {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=Dir,GoFiles,ImportPath,Export"}
	for _, m := range mutations {
		for _, p := range m.patches {
			if dir := "./" + path.Dir(p.file); path.Ext(p.file) == ".go" && !slices.Contains(args, dir) {
				args = append(args, dir)
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = "../../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	c, exports := checker{files: map[string][]string{}}, map[string]string{}
	c.imports = importer.ForCompiler(token.NewFileSet(), "gc",
		func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir, ImportPath, Export string
			GoFiles                 []string
		}
		if err := dec.Decode(&p); err == io.EOF {
			return c
		} else if err != nil {
			t.Fatal(err)
		}
		c.files[p.Dir], exports[p.ImportPath] = p.GoFiles, p.Export
	}
}

// overlay checks the packages of the overlay's files.
func (c checker) overlay(list string) error {
	text, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	var l struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &l); err != nil {
		return err
	}
	dirs := map[string]bool{}
	for file := range l.Replace {
		if filepath.Ext(file) == ".go" { // not an embedded script or a Terraform file
			dirs[filepath.Dir(file)] = true
		}
	}
	for dir := range dirs {
		if err := c.check(dir, l.Replace); err != nil {
			return err
		}
	}
	return nil
}

func (c checker) check(dir string, replace map[string]string) error {
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range c.files[dir] {
		file := filepath.Join(dir, name)
		f, err := parser.ParseFile(set, cmp.Or(replace[file], file), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return fmt.Errorf("%s is no package of the product", dir)
	}
	conf := types.Config{Importer: c.imports}
	_, err := conf.Check(dir, set, files, nil)
	return err
}

// TestBreakNoticed tries one break completely. The command tries all.
func TestBreakNoticed(t *testing.T) {
	realpart.Long(t, "builds the product twice")
	realpart.AllTrials(t)
	const name = "a history need not be sealed"
	l, dir := all(t), t.TempDir()
	b := l.breaks[slices.IndexFunc(l.breaks, func(b mutation) bool { return b.name == name })]
	binary, err := build("../../..", dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := play(binary, "-only", b.near(l.near), "-not", slowCase)
	if err != nil {
		t.Fatal(err)
	}
	if flipped, err := b.flips(l.near, "../../..", dir, whole); err != nil || len(flipped) == 0 {
		t.Errorf("%v notice it (%v)", flipped, err)
	}
}

// TestListWithStrayLine checks that a stray line is an error, and is not silently ignored.
func TestListWithStrayLine(t *testing.T) {
	for _, lines := range [][]string{{"-old"}, {"# a", "-old"}, {"# a", "a.go", "+new"},
		{"# a", "a.go", "-old", "b.go", "+new"}} {
		var into []mutation
		var err error
		for add := reader(&into); len(lines) > 0 && err == nil; lines = lines[1:] {
			err = add(lines[0])
		}
		if err == nil {
			t.Errorf("%+v was read", into)
		}
	}
}
