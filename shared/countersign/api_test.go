package countersign_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/api.txt anew")

const module = "github.com/countersign-run/countersign/"

// promised are the packages of the SDK whose exported names are a promise.
var promised = []string{module + "shared/countersign", module + "shared/countersign/agenttest",
	module + "shared/countersign/eval", module + "shared/countersign/mcp", module + "shared/countersign/offline"}

// maxNames is how many names package countersign may export, constants counted.
const maxNames = 96

// TestAPI compares the exported names of the SDK with testdata/api.txt. They may mention only the SDK's own types and
// types that its users know anyway, and their number is limited to what a person can learn.
func TestAPI(t *testing.T) {
	var out strings.Builder
	for _, pkg := range load(t, promised) {
		a := &api{t: t, pkg: pkg}
		fmt.Fprintf(&out, "package %s\n\n", strings.TrimPrefix(pkg.Path(), module))
		names := 0
		for _, name := range pkg.Scope().Names() {
			if o := pkg.Scope().Lookup(name); o.Exported() {
				names++
				a.object(o)
			}
		}
		for _, line := range a.lines {
			out.WriteString(line + "\n")
		}
		out.WriteString("\n")
		if pkg.Name() == "countersign" && names > maxNames {
			t.Errorf("%d exported names, and %d are the most", names, maxNames)
		}
	}
	const golden = "testdata/api.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || out.String() != string(want) {
		t.Errorf("%v\nwhat is exported is not what %s says; where that is meant: go test ./shared/countersign "+
			"-run TestAPI -update, and where a program could notice, a line of CHANGELOG.md\n%s", err, golden,
			diff(string(want), out.String()))
	}
}

// diff returns the lines that only one of two texts has.
func diff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	var out []string
	for _, l := range w {
		if !slices.Contains(g, l) {
			out = append(out, "- "+l)
		}
	}
	for _, l := range g {
		if !slices.Contains(w, l) {
			out = append(out, "+ "+l)
		}
	}
	return strings.Join(out, "\n")
}

// api lists what a package exports.
type api struct {
	t     *testing.T
	pkg   *types.Package
	lines []string
}

func (a *api) add(format string, args ...any) {
	a.lines = append(a.lines, fmt.Sprintf(format, args...))
}

// object lists an exported name with what it exports in turn.
func (a *api) object(o types.Object) {
	name, isType := o.(*types.TypeName)
	if !isType {
		a.check(o.Name(), o.Type())
		switch o := o.(type) {
		case *types.Const:
			a.add("const %s %s = %s", o.Name(), a.of(o.Type()), o.Val())
		case *types.Var:
			a.add("var %s %s", o.Name(), a.of(o.Type()))
		default:
			a.add("func %s%s", o.Name(), strings.TrimPrefix(a.of(o.Type()), "func"))
		}
		return
	}
	named, ok := name.Type().(*types.Named)
	if !ok || name.IsAlias() {
		a.check(name.Name(), name.Type())
		a.add("type %s = %s", name.Name(), a.of(types.Unalias(name.Type())))
		return
	}
	params := ""
	if tp := named.TypeParams(); tp.Len() > 0 {
		for p := range tp.TypeParams() {
			params += ", " + p.Obj().Name() + " " + a.of(p.Constraint())
		}
		params = "[" + params[2:] + "]"
	}
	switch u := named.Underlying().(type) {
	case *types.Struct:
		a.add("type %s%s struct", name.Name(), params)
		for f := range u.Fields() {
			if f.Exported() {
				a.check(name.Name()+"."+f.Name(), f.Type())
				a.add("type %s struct, %s %s", name.Name(), f.Name(), a.of(f.Type()))
			}
		}
	case *types.Interface: // all of them are sealed: users cannot call their methods
		a.add("type %s interface", name.Name())
		if !sealed(u) {
			a.t.Errorf("%s can be implemented by everybody", name.Name())
		}
	default:
		a.check(name.Name(), u)
		a.add("type %s%s %s", name.Name(), params, a.of(u))
	}
	methods := types.NewMethodSet(types.NewPointer(named))
	for m := range methods.Methods() {
		if f := m.Obj(); f.Exported() && !types.IsInterface(named) {
			a.check(name.Name()+"."+f.Name(), f.Type())
			a.add("method (%s) %s%s", name.Name(), f.Name(), strings.TrimPrefix(a.of(f.Type()), "func"))
		}
	}
}

// sealed reports whether an interface has a method that only its package can write.
func sealed(u *types.Interface) bool {
	for m := range u.Methods() {
		if !m.Exported() {
			return true
		}
	}
	return false
}

// of returns a type as its package's users write it.
func (a *api) of(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == a.pkg {
			return ""
		}
		return p.Name()
	})
}

// check follows a type to every type that users must name, and reports types of other packages.
func (a *api) check(where string, t types.Type) {
	seen := map[types.Type]bool{}
	var walk func(types.Type)
	walk = func(t types.Type) {
		if t == nil || seen[t] {
			return
		}
		seen[t] = true
		switch t := t.(type) {
		case *types.Alias:
			walk(types.Unalias(t))
		case *types.Named:
			if p := t.Obj().Pkg(); p != nil && !known(p.Path()) {
				a.t.Errorf("%s names %s", where, t)
			}
			for arg := range t.TypeArgs().Types() {
				walk(arg)
			}
		case *types.Signature:
			walk(t.Params())
			walk(t.Results())
		case *types.Tuple:
			for v := range t.Variables() {
				walk(v.Type())
			}
		case *types.Map:
			walk(t.Key())
			walk(t.Elem())
		case interface{ Elem() types.Type }: // a pointer, a slice, an array, a channel
			walk(t.Elem())
		case *types.Struct:
			for f := range t.Fields() {
				walk(f.Type())
			}
		}
	}
	walk(t)
}

// known reports whether the SDK's users know the package: it is the SDK's own, a port of the store, the standard
// library's, or one of two that they meet anyway.
func known(path string) bool {
	switch {
	case slices.Contains(promised, path), path == module+"shared/store", path == module+"shared/store/blob":
		return true
	case path == "github.com/google/jsonschema-go/jsonschema", strings.HasPrefix(path, "go.opentelemetry.io/otel"):
		return true
	}
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// load returns the packages as the compiler has written them down.
func load(t *testing.T, paths []string) []*types.Package {
	t.Helper()
	var missing bytes.Buffer
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"},
		paths...)...)
	cmd.Stderr = &missing
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, missing.Bytes())
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			files[path] = file
		}
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(files[path])
	})
	var all []*types.Package
	for _, path := range paths {
		pkg, err := imports.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, pkg)
	}
	return all
}
