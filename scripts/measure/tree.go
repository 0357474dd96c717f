package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/countersign-run/countersign/"

// harness lists the folders whose code checks the product and is not deployed.
var harness = []string{"shared/testkit", "scripts/prove", "scripts/check", "scripts/bench"}

// A tree is the Go code of the module.
type tree struct {
	packages       []*pkg // of shared
	product, tests int    // lines; product: of functions and shared
}

// A pkg is a package of shared, without its tests.
type pkg struct {
	path    string // shared/engine/loop
	imports map[string]bool
	funcs   []function
}

// A function is one declaration, with its lines and the depth of its blocks.
type function struct{ lines, depth int }

// group returns the folder at the first level of shared in which the package lies.
func (p *pkg) group() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(p.path, "shared/"), "/")
	return name
}

// read parses all Go files below root, except those in testdata.
func read(root string) (*tree, error) {
	t, byPath := &tree{}, map[string]*pkg{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		own, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return t.add(byPath, path, filepath.ToSlash(own))
	})
	for _, p := range byPath {
		t.packages = append(t.packages, p)
	}
	return t, err
}

func (t *tree) add(byPath map[string]*pkg, path, own string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := bytes.Count(text, []byte("\n"))
	proves := func(folder string) bool { return strings.HasPrefix(own, folder+"/") }
	if strings.HasSuffix(own, "_test.go") || slices.ContainsFunc(harness, proves) {
		t.tests += lines
		return nil
	}
	if !strings.HasPrefix(own, "shared/") && !strings.HasPrefix(own, "functions/") {
		return nil
	}
	t.product += lines
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
	if err != nil || !strings.HasPrefix(own, "shared/") {
		return err
	}
	dir := filepath.ToSlash(filepath.Dir(own))
	if byPath[dir] == nil {
		byPath[dir] = &pkg{path: dir, imports: map[string]bool{}}
	}
	byPath[dir].add(fset, file)
	return nil
}

func (p *pkg) add(fset *token.FileSet, file *ast.File) {
	for _, i := range file.Imports {
		if own, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module); ours {
			p.imports[own] = true
		}
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			lines := fset.Position(f.End()).Line - fset.Position(f.Pos()).Line + 1
			p.funcs = append(p.funcs, function{lines, depth(f.Body)})
		}
	}
}

// depth returns how deeply blocks with a condition or a loop are nested.
func depth(n ast.Node) int {
	deepest, open := 0, []bool{}
	ast.Inspect(n, func(n ast.Node) bool {
		if n == nil {
			open = open[:len(open)-1]
			return true
		}
		nests := false
		switch n.(type) {
		case *ast.ForStmt, *ast.RangeStmt, *ast.IfStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			nests = true
		}
		open = append(open, nests)
		now := 0
		for _, nests := range open {
			if nests {
				now++
			}
		}
		deepest = max(deepest, now)
		return true
	})
	return deepest
}

// arrows returns the number of imports within a group, and the pairs of groups with an import between them.
func (t *tree) arrows() (within int, between map[[2]string]bool) {
	between = map[[2]string]bool{}
	for _, p := range t.packages {
		for path := range p.imports {
			if !strings.HasPrefix(path, "shared/") {
				continue
			}
			if from, to := p.group(), (&pkg{path: path}).group(); from == to {
				within++
			} else {
				between[[2]string{from, to}] = true
			}
		}
	}
	return within, between
}

// functions returns the sorted lengths of all functions of shared, and the deepest nesting.
func (t *tree) functions() (lines []int, deepest int) {
	for _, p := range t.packages {
		for _, f := range p.funcs {
			lines = append(lines, f.lines)
			deepest = max(deepest, f.depth)
		}
	}
	slices.Sort(lines)
	return lines, deepest
}
