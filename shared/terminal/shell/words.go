package shell

import (
	"fmt"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// span is a place in a command: the index of its first byte, and the index after its last byte.
type span struct{ Start, End int }

func place(n syntax.Node) span { return span{int(n.Pos().Offset()), int(n.End().Offset())} }

// unclear describes the part of a word that only a shell could determine.
type unclear struct {
	what string // such as "a command substitution"
	span
}

// literal returns the word as the shell passes it on, or the part that only the shell could determine.
func literal(w *syntax.Word) (string, *unclear) {
	var b strings.Builder
	for _, part := range w.Parts {
		what := ""
		switch p := part.(type) {
		case *syntax.Lit:
			what = unquoted(&b, p.Value)
			if what == "" && (expands(p.Value) || len(w.Parts) > 1 && braces(p.Value)) {
				what = "a brace expansion"
			}
		case *syntax.SglQuoted:
			if p.Dollar {
				what = "a quoting of bash ($'…')"
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if what = doubleQuoted(&b, p); p.Dollar {
				what = `a quoting of bash ($"…")`
			}
		default:
			what = kind(part)
		}
		if what != "" {
			return "", &unclear{what, place(part)}
		}
	}
	return b.String(), nil
}

// unquoted adds a part without quotes.
func unquoted(b *strings.Builder, s string) (what string) {
	escaped := false
	last := '=' // a tilde may follow it, as at the beginning
	for _, r := range s {
		switch {
		case escaped:
			escaped = false
			b.WriteRune(r)
			last = 'x'
			continue
		case r == '\\':
			escaped = true
			continue
		case r == '~' && (last == '=' || last == ':'):
			return "a home directory (~)"
		case strings.ContainsRune("*?[]", r):
			return fmt.Sprintf("a pattern (%c without quotes)", r)
		case r == '$' || r == '`':
			return fmt.Sprintf("%q without quotes", r)
		case !isPlain(r) && !strings.ContainsRune("~^{}", r) && r <= unicode.MaxASCII:
			return fmt.Sprintf("%q without quotes", r)
		}
		b.WriteRune(r)
		last = r
	}
	if escaped {
		return "a backslash without a character"
	}
	return ""
}

// expands reports whether the shell, or find and xargs, may replace braces in a word. They do not replace the braces in
// @{u}, stash@{0} and {{.Names}}, which contain no comma and no range.
func expands(s string) bool {
	if !braces(s) {
		return false
	}
	bare := escapes.ReplaceAllString(s, "")
	depth, last := 0, ' '
	for _, r := range bare {
		switch {
		case r == '{':
			depth++
		case r == '}':
			depth--
		case r == ',' || r == '.' && last == '.' && depth > 0:
			return true
		}
		if last = r; depth < 0 {
			return true
		}
	}
	return depth != 0 || strings.Contains(bare, "{}") || bare != s
}

// braces reports whether a word has braces without a backslash.
func braces(s string) bool {
	return strings.ContainsAny(s, "{}") && strings.ContainsAny(escapes.ReplaceAllString(s, ""), "{}")
}

var escapes = lazyregexp.New(`(?s)\\.`)

// doubleQuoted adds a part in double quotes.
func doubleQuoted(b *strings.Builder, q *syntax.DblQuoted) (what string) {
	for n, part := range q.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			return kind(part)
		}
		escaped := false
		for i, r := range lit.Value {
			switch {
			case escaped:
				if !strings.ContainsRune("$`\"\\", r) {
					b.WriteByte('\\')
				}
				escaped = false
			case r == '\\':
				escaped = true
				continue
			case r == '$' && n == len(q.Parts)-1 && i == len(lit.Value)-1: // the quote follows it
			case r == '$' || r == '`': // a line continuation may hide what follows it
				return fmt.Sprintf("%q without a backslash", r)
			}
			b.WriteRune(r)
		}
		if escaped {
			return "a backslash without a character"
		}
	}
	return ""
}

// kind names a part of a word that a shell replaces by something else.
func kind(part syntax.WordPart) string {
	switch part.(type) {
	case *syntax.CmdSubst:
		return "a command substitution"
	case *syntax.ProcSubst:
		return "a process substitution"
	case *syntax.ParamExp:
		return "a variable"
	case *syntax.ArithmExp:
		return "arithmetic"
	case *syntax.ExtGlob, *syntax.BraceExp:
		return "a pattern"
	}
	return "an expansion"
}
