package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// variable warns about a word that the shell replaces with the value of a variable.
func (l *look) variable(p *syntax.ParamExp) {
	at := place(p)
	l.index(p.Index, at)
	if p.Slice != nil {
		l.index(p.Slice.Offset, at)
		l.index(p.Slice.Length, at)
	}
	if p.Exp != nil && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull) {
		l.sets(p.Param.Value, at)
	}
	if p.Excl || p.Exp != nil && p.Exp.Op == syntax.OtherParamOps {
		l.warn(at, Opaque, "indirect", "It runs or looks up what a variable holds.")
		return
	}
	l.warn(at, Change, "variable", "What the variable holds cannot be seen here.")
}

// arithmetic warns about expressions with names: bash evaluates the value of a variable, and therefore runs
// substitutions in the brackets of an index. The operands of a test are expressions only if it compares numbers.
func (l *look) arithmetic(n syntax.Node) {
	test, isTest := n.(*syntax.TestClause)
	for inner := range syntax.Preorder(n) {
		switch inner := inner.(type) {
		case *syntax.BinaryArithm:
			if w, ok := inner.X.(*syntax.Word); ok && assigns(inner.Op) {
				l.sets(w.Lit(), place(w))
			}
		case *syntax.BinaryTest:
			if comparesNumbers(inner.Op) {
				l.index(inner.X, place(test))
				l.index(inner.Y, place(test))
			}
		case *syntax.Word:
			if value, unclear := literal(inner); unclear != nil || strings.ContainsAny(value, "[$`") ||
				!isTest && l.isName(value, place(inner)) {
				l.evaluated(place(n))
				return
			}
		}
	}
}

// index examines an expression in brackets or in a comparison of numbers.
func (l *look) index(e syntax.Node, at span) {
	if w, ok := e.(*syntax.Word); ok {
		value, unclear := literal(w)
		if unclear != nil && w.Lit() != "*" || strings.ContainsAny(value, "[$`") || l.isName(value, place(w)) {
			l.evaluated(at)
		}
		return
	}
	if e != nil {
		l.arithmetic(e)
	}
}

func (l *look) evaluated(at span) {
	l.warn(at, Opaque, "evaluated", "The shell evaluates this expression, which may run commands.")
}

// isName reports whether a word of an expression is a variable that may hold more than a number.
func (l *look) isName(word string, at span) bool {
	loop, ok := l.counts[word]
	return isVariable(word) && !(ok && loop.Start <= at.Start && at.End <= loop.End)
}

func comparesNumbers(op syntax.BinTestOperator) bool { return op >= syntax.TsEql && op <= syntax.TsGtr }

func assigns(op syntax.BinAritOperator) bool {
	return op == syntax.Assgn || op >= syntax.AddAssgn && op <= syntax.ShrAssgn
}

// counters returns the loop variables that start with a number and that the command assigns only numbers to, with the
// places of their loops.
func counters(file *syntax.File) map[string]span {
	all := map[string]span{}
	for n := range syntax.Preorder(file) {
		if loop, ok := n.(*syntax.ForClause); ok {
			if name := counter(loop); name != "" {
				all[name] = place(loop)
			}
		}
	}
	for n := range syntax.Preorder(file) {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				delete(all, n.Name.Value)
			}
		case *syntax.WordIter:
			delete(all, n.Name.Value)
		case *syntax.ParamExp:
			if n.Exp != nil && n.Param != nil {
				delete(all, n.Param.Value)
			}
		case *syntax.CallExpr:
			for _, w := range n.Args { // arguments of read and similar builtins
				delete(all, w.Lit())
			}
		}
	}
	return all
}

// counter returns the variable that the start of a loop sets to a number, or "".
func counter(n *syntax.ForClause) string {
	loop, ok := n.Loop.(*syntax.CStyleLoop)
	if !ok {
		return ""
	}
	if b, ok := loop.Init.(*syntax.BinaryArithm); ok && b.Op == syntax.Assgn {
		x, _ := b.X.(*syntax.Word)
		if y, _ := b.Y.(*syntax.Word); x != nil && y != nil && isNumber(y.Lit()) {
			return x.Lit()
		}
	}
	return ""
}

// assign examines an assignment, before a command or alone.
func (l *look) assign(a *syntax.Assign) {
	if a.Name == nil || a.Naked {
		return
	}
	l.index(a.Index, place(a))
	l.sets(a.Name.Value, place(a))
}

// sets warns about a variable that is set or unset, if it decides which programs run.
func (l *look) sets(name string, at span) {
	if steers(name) {
		l.warn(at, Opaque, "environment", "%s decides which programs run, or what they load.", name)
	}
}

// declares examines export, declare and similar builtins.
func (l *look) declares(n *syntax.DeclClause) {
	l.name(n.Variant.Value)
	for _, a := range n.Args {
		l.assign(a)
		if a.Name == nil && a.Value != nil {
			word, unclear := literal(a.Value)
			if unclear != nil {
				word = ""
			}
			l.declared(n.Variant.Value, word, place(a))
		}
	}
}

// declared examines an argument of export, declare and similar builtins. name is empty if only the shell could
// determine it.
func (l *look) declared(name, word string, at span) {
	variable, _, ok := strings.Cut(word, "=")
	switch {
	case word == "":
		l.warn(at, Opaque, "environment", "Which variable this sets only the shell can tell.")
	case ok:
		l.sets(variable, at)
	case isAmong("export readonly", name):
	case cluster(word) && strings.ContainsAny(word, "in"):
		l.evaluated(at)
	}
}

// variables examines the builtins that set the variables that their arguments name. args leaves out arguments that are
// not literal.
func (l *look) variables(args []string, words []*syntax.Word) {
	name := args[0]
	switch {
	case isAmong("export readonly declare typeset local", name): // in a grammar in which these are programs
		for i, a := range args[1:] {
			l.declared(name, a, place(words[i+1]))
		}
	case name == "printf" && len(args) > 1 && args[1] == "":
		if mayBeOption(words[1]) {
			l.declared(name, "", place(words[1]))
		}
	case name == "printf" && len(args) > 1 && !strings.HasPrefix(args[1], "-v"):
	case isAmong("test [", name):
		l.tests(args, words)
	case isAmong("printf read mapfile readarray getopts wait unset", name):
		for i, a := range args[1:] {
			if a == "" && slices.ContainsFunc(words[i+1].Parts, notText) {
				l.declared(name, "", place(words[i+1]))
			}
			l.sets(a, place(words[i+1]))
			if len(a) > 2 && a[0] == '-' {
				l.sets(a[2:], place(words[i+1]))
			}
		}
	}
}

// tests examines test: bash looks up the variable that -v names, and shells of the Korn family evaluate numbers.
func (l *look) tests(args []string, words []*syntax.Word) {
	for i := 1; i < len(args)-1; i++ {
		switch args[i] {
		case "-v", "-R":
			if args[i+1] == "" {
				l.evaluated(place(words[i+1]))
			}
		case "-eq", "-ne", "-lt", "-le", "-gt", "-ge":
			if l.grammar == POSIX && !(isNumber(args[i-1]) && isNumber(args[i+1])) {
				l.evaluated(place(words[i]))
			}
		}
	}
}

func notText(p syntax.WordPart) bool {
	_, quoted := p.(*syntax.SglQuoted)
	return !quoted
}
