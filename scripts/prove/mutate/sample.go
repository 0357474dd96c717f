package mutate

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/scripts/prove/proof"
)

// site is a place in the product's code, and the fault to plant there.
type site struct {
	file     string // relative to the root
	line     int
	from, to int // byte offsets
	text     string
	what     string
}

func (s site) name() string { return fmt.Sprintf("%s:%d: %s", s.file, s.line, s.what) }

// sample plants n faults, one at a time, which the run's seed selects. It reports those that no test notices. A fault
// that does not compile does not count. The tests of the fault's package run first, and then those of the packages that
// import it, all with -short.
func sample(ctx context.Context, r *proof.Run, n int, root string) error {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	sites, err := sitesOf(root)
	if err != nil {
		return err
	}
	chance := rand.New(rand.NewPCG(r.Seed, 0))
	chance.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	importers, err := importersOf(ctx, root)
	if err != nil {
		return err
	}
	for _, s := range sites {
		if n == 0 || ctx.Err() != nil {
			break
		}
		by, compiled, err := plant(ctx, root, dir, s, importers)
		switch {
		case err != nil:
			return err
		case !compiled:
			continue
		case by == "":
			r.Finding(s.name(), "no test notices")
		default:
			r.Held(s.name(), "noticed by %s", by)
		}
		n--
	}
	return ctx.Err()
}

// plant returns the test that noticed the fault, and whether it compiles.
func plant(ctx context.Context, root, dir string, s site, importers map[string][]string) (by string, compiled bool,
	err error) {
	whole, err := os.ReadFile(filepath.Join(root, s.file))
	if err != nil {
		return "", false, err
	}
	m := mutation{name: s.name(), patches: []patch{{file: s.file, old: string(whole),
		new: string(whole[:s.from]) + s.text + string(whole[s.to:])}}}
	list, err := overlay(root, dir, m.patches)
	if err != nil {
		return "", false, err
	}
	if compiles(root, list, m) != nil {
		return "", false, nil
	}
	own := "./" + filepath.Dir(s.file)
	for _, packages := range [][]string{{own}, importers[own]} {
		if len(packages) == 0 {
			continue
		}
		t := proof.GoTest(ctx, root, append([]string{"-short", "-failfast", "-vet=off", "-overlay=" + list},
			packages...)...)
		if t.Failed {
			return t.String(), true, nil
		}
	}
	return "", true, nil
}

// importersOf returns the packages that import each package, in their code or tests, as paths below the root.
func importersOf(ctx context.Context, root string) (map[string][]string, error) {
	const format = `{{.ImportPath}} {{.Dir}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}`
	cmd := exec.CommandContext(ctx, "go", "list", "-f", format, "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	top, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	places, all := map[string]string{}, map[string][]string{}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 1 {
			places[f[0]] = "." + strings.TrimPrefix(f[1], top)
		}
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		for _, imported := range f[2:] {
			of, ours := places[imported]
			if by := places[f[0]]; ours && by != of && !slices.Contains(all[of], by) {
				all[of] = append(all[of], by)
			}
		}
	}
	return all, nil
}

// sitesOf returns the places in the product's code where a fault can be planted, in the order of the files.
func sitesOf(root string) (all []site, err error) {
	for _, top := range []string{"functions", "shared"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || d.Name() == "testkit" || strings.HasSuffix(d.Name(), "test")):
				return filepath.SkipDir // the folder has only test helpers
			case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			found, err := sitesIn(root, path)
			all = append(all, found...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func sitesIn(root, path string) ([]site, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	below, err := filepath.Rel(root, path)
	if err != nil {
		return nil, err
	}
	var all []site
	ast.Inspect(file, func(n ast.Node) bool {
		if _, imports := n.(*ast.ImportSpec); imports {
			return false
		}
		for _, f := range faultsAt(n, func(of ast.Node) string {
			return string(text[set.Position(of.Pos()).Offset:set.Position(of.End()).Offset])
		}) {
			at, to := set.Position(f.of.Pos()), set.Position(f.of.End())
			all = append(all, site{file: filepath.ToSlash(below), line: at.Line, from: at.Offset, to: to.Offset,
				text: f.text, what: f.what})
		}
		return true
	})
	return all, nil
}

// fault is the replacement of a node.
type fault struct {
	of         ast.Node
	text, what string
}

// faultsAt returns the faults that can be planted at a node: a negated condition, a dropped call, two swapped
// arguments, or a changed constant.
func faultsAt(n ast.Node, source func(ast.Node) string) []fault {
	switch n := n.(type) {
	case *ast.IfStmt:
		return []fault{{n.Cond, "!(" + source(n.Cond) + ")", "a negated condition"}}
	case *ast.ExprStmt:
		if _, call := n.X.(*ast.CallExpr); call {
			return []fault{{n, "{}", "a dropped call"}}
		}
	case *ast.CallExpr:
		last := len(n.Args) - 1
		if last > 0 && !n.Ellipsis.IsValid() && source(n.Args[last]) != source(n.Args[last-1]) {
			args := make([]string, len(n.Args))
			for i, a := range n.Args {
				args[i] = source(a)
			}
			args[last-1], args[last] = args[last], args[last-1]
			return []fault{{n, source(n.Fun) + "(" + strings.Join(args, ", ") + ")", "swapped arguments"}}
		}
	case *ast.BasicLit:
		if value, err := strconv.ParseInt(n.Value, 0, 64); err == nil && n.Kind == token.INT {
			return []fault{{n, strconv.FormatInt(value+1, 10), "a changed constant"}}
		}
	}
	return nil
}
