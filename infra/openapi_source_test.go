package infra_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// source is the parsed source of a package in this repository. It includes unexported declarations, because these are
// described too.
type source struct {
	dir   string
	files []*ast.File
}

// read parses a package of shared. Its name has no group.
func read(t *testing.T, dir string) source {
	t.Helper()
	names, err := filepath.Glob("../shared/" + dir + "/*.go")
	if grouped, _ := filepath.Glob("../shared/*/" + dir + "/*.go"); len(names) == 0 {
		names = grouped
	}
	if err != nil || len(names) == 0 {
		t.Fatalf("%s has no Go files, %v", dir, err)
	}
	s := source{dir: dir}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		s.files = append(s.files, f)
	}
	return s
}

// strings returns the sorted values of the constants of a type, or of those declared together with the named constant.
func (s source) strings(t *testing.T, kind string) (values []string) {
	t.Helper()
	for _, f := range s.files {
		ast.Inspect(f, func(n ast.Node) bool {
			list, ok := n.(*ast.GenDecl)
			if !ok || list.Tok != token.CONST ||
				!slices.ContainsFunc(list.Specs, func(spec ast.Spec) bool { return isOf(spec, kind) }) {
				return true
			}
			for _, spec := range list.Specs {
				values = append(values, word(t, spec.(*ast.ValueSpec).Values[0]))
			}
			return true
		})
	}
	slices.Sort(values)
	return values
}

// word returns the value of a string constant, of this package or of another one.
func word(t *testing.T, e ast.Expr) string {
	t.Helper()
	if other, ok := e.(*ast.SelectorExpr); ok {
		dir := other.X.(*ast.Ident).Name
		for _, f := range read(t, dir).files {
			if o := f.Scope.Lookup(other.Sel.Name); o != nil {
				return word(t, o.Decl.(*ast.ValueSpec).Values[0])
			}
		}
		t.Fatalf("package %s has no %s", dir, other.Sel.Name)
	}
	value, err := strconv.Unquote(e.(*ast.BasicLit).Value)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func isOf(spec ast.Spec, kind string) bool {
	v := spec.(*ast.ValueSpec)
	id, typed := v.Type.(*ast.Ident)
	return v.Names[0].Name == kind || typed && id.Name == kind
}

// number returns the value of a constant that is an integer or a shift of one.
func (s source) number(t *testing.T, name string) int {
	t.Helper()
	found := -1
	for _, f := range s.files {
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 && v.Names[0].Name == name {
				found = valueOf(v.Values[0])
			}
			return true
		})
	}
	if found < 0 {
		t.Fatalf("%s has no number %s", s.dir, name)
	}
	return found
}

func valueOf(e ast.Expr) int {
	switch e := e.(type) {
	case *ast.BasicLit:
		if n, err := strconv.Atoi(e.Value); err == nil {
			return n
		}
	case *ast.BinaryExpr:
		if x, y := valueOf(e.X), valueOf(e.Y); e.Op == token.SHL && x >= 0 && y >= 0 {
			return x << y
		}
	}
	return -1
}

// fields returns the sorted JSON names of a struct: all of them, and those without omitempty. The struct is a type or a
// variable with this name. If the name is a function's, it is the last struct that the function writes, its response.
// With "/in" it is the first one, its request.
func (s source) fields(t *testing.T, name string) (needed, all []string) {
	t.Helper()
	st := s.structure(name)
	if st == nil {
		t.Fatalf("%s has no struct %s", s.dir, name)
	}
	for _, f := range st.Fields.List {
		if len(f.Names) == 0 {
			n, a := s.embedded(t, f.Type)
			needed, all = append(needed, n...), append(all, a...)
			continue
		}
		if !f.Names[0].IsExported() {
			continue // it has no JSON name
		}
		quoted, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			t.Fatal(err)
		}
		field, rest, _ := strings.Cut(reflect.StructTag(quoted).Get("json"), ",")
		if field == "-" {
			continue
		}
		all = append(all, field)
		if rest == "" {
			needed = append(needed, field)
		}
	}
	slices.Sort(needed)
	slices.Sort(all)
	return needed, all
}

func (s source) embedded(t *testing.T, e ast.Expr) (needed, all []string) {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if other, ok := e.(*ast.SelectorExpr); ok {
		return read(t, other.X.(*ast.Ident).Name).fields(t, other.Sel.Name)
	}
	return s.fields(t, e.(*ast.Ident).Name)
}

func (s source) structure(name string) (found *ast.StructType) {
	function, first := strings.CutSuffix(name, "/in")
	for _, f := range s.files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if st, ok := n.Type.(*ast.StructType); ok && n.Name.Name == name {
					found = st
				}
			case *ast.FuncDecl:
				if n.Name.Name == function && n.Body != nil && found == nil { // a type with the name takes precedence
					found = within(n.Body, first)
				}
			case *ast.ValueSpec:
				if n.Names[0].Name == name {
					found = within(n, true)
				}
			}
			return true
		})
	}
	return found
}

func within(body ast.Node, first bool) (found *ast.StructType) {
	ast.Inspect(body, func(n ast.Node) bool {
		if st, ok := n.(*ast.StructType); ok && (found == nil || !first) {
			found = st
		}
		return true
	})
	return found
}
