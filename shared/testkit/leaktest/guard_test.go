package leaktest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// starters lists the packages whose use starts goroutines or makes random choices; a package's own go statements count
// too.
var starters = []string{"net/http/httptest", "os/exec", "/scripts/dev", "/shared/app", "/shared/engine/queue/embedded",
	"/shared/store/embedded", "/shared/testkit\"", "/shared/testkit/emulators", "/shared/testkit/fakegoogle",
	"/shared/testkit/issuer", "pgregory.net/rapid", "/shared/store/storetest"}

// TestMainInEveryPackage checks that the tests of each package that starts goroutines or a server, or has property
// tests, end in [Main].
func TestMainInEveryPackage(t *testing.T) {
	tested, starts, asked := map[string]bool{}, map[string]string{}, map[string]bool{}
	err := filepath.WalkDir("../../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		tested[dir] = tested[dir] || strings.HasSuffix(path, "_test.go")
		for _, imp := range file.Imports {
			for _, s := range starters {
				if strings.Contains(imp.Path.Value, s) {
					starts[dir] = path + " imports " + imp.Path.Value
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				starts[dir] = path + " has a go statement"
			case *ast.SelectorExpr:
				pkg, _ := n.X.(*ast.Ident)
				asked[dir] = asked[dir] || pkg != nil && pkg.Name == "leaktest" && n.Sel.Name == "Main"
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(starts) < 20 {
		t.Fatalf("only %d packages start goroutines or draw", len(starts))
	}
	for dir, why := range starts {
		if tested[dir] && !asked[dir] && !strings.HasSuffix(dir, "/testkit/seed") { // seed is used by Main itself
			t.Errorf("the tests of %s do not end in leaktest.Main: %s", dir, why)
		}
	}
}
