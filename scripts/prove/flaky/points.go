package flaky

import (
	"cmp"
	"go/ast"
	"go/token"
	"slices"
)

// place is a place in a file, and the form of the call to insert there.
type place struct {
	pos  token.Pos
	form string
}

// The forms of a call: after a statement, before the first statement of a block, and before a deferred statement. The
// deferred call then runs after that statement.
const (
	after    = "; %s"
	first    = " %s;"
	deferred = "defer %s; "
)

// passing holds the names of functions after which another goroutine or process can continue.
var passing = []string{"close", "cancel", "stop", "yield", "AfterFunc", "Broadcast", "Cancel", "Close", "CloseWrite",
	"Commit", "Done", "Encode", "Flush", "Fprint", "Fprintf", "Fprintln", "Go", "Kill", "Notify", "Publish", "Read",
	"RUnlock", "Send", "Serve", "Signal", "Start", "Stop", "Store", "Unlock", "Wait", "Write", "WriteString"}

// starting holds the names of functions that call a function in another goroutine.
var starting = []string{"AfterFunc", "Go"}

// pointsOf returns the places after which another goroutine or process can continue, in the order of the text.
func pointsOf(f *ast.File) (all []place) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			all = append(all, pointsIn(n.List)...)
		case *ast.CaseClause:
			all = append(all, pointsIn(n.Body)...)
		case *ast.CommClause:
			if n.Comm != nil {
				all = append(all, place{n.Colon + 1, first})
			}
			all = append(all, pointsIn(n.Body)...)
		case *ast.RangeStmt:
			if mayIterate(n.X) {
				all = append(all, place{n.Body.Lbrace + 1, first})
			}
		case *ast.GoStmt:
			all = append(all, begins(n.Call.Fun)...)
		case *ast.CallExpr:
			if slices.Contains(starting, name(n)) {
				all = append(all, begins(n.Args...)...)
			}
		}
		return true
	})
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(a.pos, b.pos) })
	return all
}

// pointsIn returns the places of a list of statements.
func pointsIn(list []ast.Stmt) (all []place) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.SendStmt, *ast.GoStmt:
			all = append(all, place{s.End(), after})
		case *ast.ExprStmt, *ast.AssignStmt:
			if passes(s) {
				all = append(all, place{s.End(), after})
			}
		case *ast.IfStmt:
			if s.Else == nil && passes(s.Init, s.Cond) {
				all = append(all, place{s.End(), after})
			}
		case *ast.DeferStmt:
			if passes(s.Call) {
				all = append(all, place{s.Pos(), deferred})
			}
		}
	}
	return all
}

// packages holds the packages whose functions return results without starting a goroutine.
var packages = []string{"bytes", "maps", "slices", "strings"}

// mayIterate reports whether an expression may be an iterator of the module.
func mayIterate(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok || name(call) == "append" {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return true
	}
	of, ok := f.X.(*ast.Ident)
	return !ok || !slices.Contains(packages, of.Name)
}

// begins returns the place at which each function literal begins.
func begins(functions ...ast.Expr) (all []place) {
	for _, f := range functions {
		if f, ok := f.(*ast.FuncLit); ok {
			all = append(all, place{f.Body.Lbrace + 1, first})
		}
	}
	return all
}

// passes reports whether the nodes call a function of passing or receive from a channel, outside function literals.
func passes(nodes ...ast.Node) (found bool) {
	for _, n := range nodes {
		if n == nil {
			continue
		}
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				return false
			case *ast.CallExpr:
				found = found || slices.Contains(passing, name(n)) && !fills(n)
			case *ast.UnaryExpr:
				found = found || n.Op == token.ARROW
			}
			return true
		})
	}
	return found
}

// fills reports whether a call writes to a variable of this process, such as fmt.Fprintf(&b, …).
func fills(call *ast.CallExpr) bool {
	if len(call.Args) == 0 {
		return false
	}
	to, ok := call.Args[0].(*ast.UnaryExpr)
	return ok && to.Op == token.AND
}

// name returns the name of the called function or method, without its package or receiver.
func name(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}
