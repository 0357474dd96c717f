package shared_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDirectionOfCalls checks the packages that advance a run. If a file calls functions of another file of its
// package, the other file does not lead back to it, so you read each package downwards.
func TestDirectionOfCalls(t *testing.T) {
	for _, dir := range []string{"agent/plan", "agent/run", "engine/unit", "engine/approval", "engine/effect",
		"engine/conversation", "engine/loop"} {
		calls := callsBetweenFiles(t, dir)
		for from := range calls {
			for to := range calls[from] {
				if reaches(calls, to, from, map[string]bool{}) {
					t.Errorf("%s: %s calls %s of %s, and is called from there", dir, from,
						strings.Join(slices.Sorted(maps.Keys(calls[from][to])), ", "), to)
				}
			}
		}
	}
}

// callsBetweenFiles returns the functions that each file of a package uses of another.
func callsBetweenFiles(t *testing.T, dir string) (calls map[string]map[string]map[string]bool) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(dir, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	// the imports do not matter here, so they are left unknown
	conf := types.Config{Importer: noImports{}, Error: func(error) {}}
	pkg, _ := conf.Check(dir, fset, files, &info)
	fileOf := func(p token.Pos) string { return filepath.Base(fset.Position(p).Filename) }
	calls = map[string]map[string]map[string]bool{}
	for id, o := range info.Uses {
		from, to := fileOf(id.Pos()), fileOf(o.Pos())
		if _, ok := o.(*types.Func); !ok || o.Pkg() != pkg || from == to {
			continue
		}
		if calls[from] == nil {
			calls[from] = map[string]map[string]bool{}
		}
		if calls[from][to] == nil {
			calls[from][to] = map[string]bool{}
		}
		calls[from][to][o.Name()] = true
	}
	if len(files) > 3 && len(calls) == 0 {
		t.Fatalf("%s: no file calls another", dir)
	}
	return calls
}

type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not needed") }

// reaches reports whether calls lead from one file to another.
func reaches(calls map[string]map[string]map[string]bool, from, to string, seen map[string]bool) bool {
	if from == to {
		return true
	}
	seen[from] = true
	for next := range calls[from] {
		if !seen[next] && reaches(calls, next, to, seen) {
			return true
		}
	}
	return false
}
