package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// A piece is one program of a read-only command line, with the operator before it.
type piece struct {
	joint string // such as " | "; empty for the first piece
	argv  []string
	globs map[int]bool // the words that the shell expands to names of files
	after string       // redirections of its output, with a space before each
	input string       // the file that is its input, or empty
	fed   bool         // its input is a pipe or a file, so that it waits for no keys
	test  bool         // it is test in its form with brackets

	reads []int // indexes in argv of the files whose content it prints
}

// joints are the permitted operators between two programs of a line.
var joints = map[syntax.BinCmdOperator]string{syntax.Pipe: " | ", syntax.AndStmt: " && ", syntax.OrStmt: " || "}

// maxPieces is the maximum number of programs in a line that runs without approval.
const maxPieces = 32

// piecesOf returns the programs of a command. It returns nil for a command with a construct that is not listed, or with
// a word that only the shell could determine.
func piecesOf(file *syntax.File) (pieces []piece) {
	if len(file.Stmts) > maxPieces {
		return nil
	}
	for i, s := range file.Stmts {
		joint := ""
		if i > 0 {
			joint = "; "
		}
		more := statement(s, joint, false)
		if more == nil {
			return nil
		}
		pieces = append(pieces, more...)
	}
	if len(pieces) > maxPieces {
		return nil
	}
	return pieces
}

// statement returns the programs of a statement. If fed is true, its input is a pipe.
func statement(s *syntax.Stmt, joint string, fed bool) []piece {
	if s.Negated || s.Background || s.Coprocess || s.Disown {
		return nil
	}
	switch cmd := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		op, ok := joints[cmd.Op]
		if !ok || len(s.Redirs) > 0 {
			return nil
		}
		x := statement(cmd.X, joint, fed)
		y := statement(cmd.Y, op, fed || cmd.Op == syntax.Pipe)
		if x == nil || y == nil {
			return nil
		}
		return append(x, y...)
	case *syntax.CallExpr:
		p := piece{joint: joint, fed: fed}
		if len(cmd.Assigns) > 0 || len(cmd.Args) == 0 || !p.spell(cmd.Args) || !p.redirect(s.Redirs) {
			return nil
		}
		return []piece{p}
	}
	return nil
}

// spell records the words of a program, and reports whether it knows all of them.
func (p *piece) spell(args []*syntax.Word) bool {
	bracket := args[0].Lit() == "[" && len(args) > 1 && args[len(args)-1].Lit() == "]"
	if bracket {
		args = args[:len(args)-1]
	}
	for i, w := range args {
		word, glob, known := wordOf(w, i == 0)
		if bracket && i == 0 {
			word, glob, known, p.test = "test", false, true, true
		}
		if !known {
			return false
		}
		if glob {
			if p.globs == nil {
				p.globs = map[int]bool{}
			}
			p.globs[i] = true
		}
		p.argv = append(p.argv, word)
	}
	return len(p.globs) == 0 || !p.globs[0]
}

// wordOf returns a word of a program, whether it is a pattern for file names, and whether it is known.
func wordOf(w *syntax.Word, first bool) (word string, glob, known bool) {
	word, unclear := literal(w)
	if unclear == nil {
		// A name that begins with ~ is not a home directory.
		return word, false, printable(word) && !strings.HasPrefix(word, "~")
	}
	if !first && isOption(w.Lit()) {
		return w.Lit(), false, true // no file name matches an option, so the shell leaves it unchanged
	}
	if word = atHome(w); word != "" {
		return word, false, true
	}
	word = pattern(w)
	return word, true, word != ""
}

// printable reports whether a text is printable ASCII.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// atHome returns a word that begins with the home directory, in the form ~ or ~/PATH. It returns "" for every other
// word.
func atHome(w *syntax.Word) string {
	parts := w.Parts
	if q, ok := parts[0].(*syntax.DblQuoted); ok && len(parts) == 1 && !q.Dollar {
		parts = q.Parts
	}
	lit := ""
	switch first := parts[0].(type) {
	case *syntax.ParamExp:
		if !first.Short && !plainParameter(first) || first.Param == nil || first.Param.Value != "HOME" {
			return ""
		}
	case *syntax.Lit:
		if len(w.Parts) != 1 || !strings.HasPrefix(first.Value, "~") {
			return ""
		}
		lit = first.Value[1:]
	default:
		return ""
	}
	switch {
	case len(parts) == 2:
		rest, ok := parts[1].(*syntax.Lit)
		if !ok {
			return ""
		}
		lit = rest.Value
	case len(parts) > 2:
		return ""
	}
	if lit == "" {
		return "~"
	}
	for _, r := range lit {
		if !isPlain(r) {
			return ""
		}
	}
	if lit[0] != '/' {
		return ""
	}
	return "~" + lit
}

// plainParameter reports whether a parameter in braces stands for its value only.
func plainParameter(p *syntax.ParamExp) bool {
	return !p.Excl && !p.Length && !p.Width && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil &&
		p.Names == 0 && p.NestedParam == nil && p.Flags == nil && len(p.Modifiers) == 0
}

// isOption reports whether a word is !, !=, {}, or an option whose value may have * and ?.
var isOption = lazyregexp.New(`^(?:!=?|\{\}|--[a-z-]+=[A-Za-z0-9_.,*?/-]+)$`).MatchString

// pattern returns a word if the shell expands *, ? or [ in its last part only, and it does not begin with a dash. It
// returns "" for every other word.
func pattern(w *syntax.Word) string {
	lit, ok := w.Parts[0].(*syntax.Lit)
	if !ok || len(w.Parts) != 1 {
		return ""
	}
	dir, _ := path.Split(strings.TrimRight(lit.Value, "/"))
	for i, r := range lit.Value {
		if (!isPlain(r) || r == '=') && (i < len(dir) || !strings.ContainsRune("*?[]", r)) {
			return ""
		}
	}
	if rest, ok := strings.CutPrefix(lit.Value, "./"); ok && rest != "" && strings.ContainsAny(rest[:1], "*?[") {
		return rest // text adds the folder again
	}
	return strings.TrimLeft(lit.Value, "-")
}

// redirect records the redirections of a program, and reports whether they only drop output, merge streams, or read a
// file.
func (p *piece) redirect(all []*syntax.Redirect) bool {
	for _, r := range all {
		if r.Word == nil || r.Hdoc != nil {
			return false
		}
		n := ""
		if r.N != nil {
			n = r.N.Value
		}
		target, unclear := literal(r.Word)
		switch {
		case unclear != nil || !printable(target):
			return false
		case r.Op == syntax.RdrIn && n == "" && p.input == "" && isPath(target):
			p.input, p.fed = target, true
		case n != "" && n != "1" && n != "2":
			return false
		case (r.Op == syntax.RdrOut || r.Op == syntax.AppOut) && target == "/dev/null":
			p.after += " " + n + ">/dev/null"
		case r.Op == syntax.DplOut && (target == "1" || target == "2"):
			p.after += " " + n + ">&" + target
		default:
			return false
		}
	}
	return true
}

// text returns the piece for the shell. names, if any, replace the files that it reads, and home replaces ~.
func (p *piece) text(home string, names []string) string {
	words := slices.Clone(p.argv)
	for i, at := range p.reads {
		if len(names) > 0 {
			words[at] = names[i]
		}
	}
	for i, w := range words {
		switch {
		case p.globs[i] && strings.ContainsAny(w[:1], "*?["):
			words[i] = "./" + w // no name that it becomes is an option
		case p.globs[i]:
		case home != "" && (w == "~" || strings.HasPrefix(w, "~/")):
			words[i] = Quote([]string{home + w[1:]})
		case w == "~" || strings.HasPrefix(w, "~/"):
		case i > 0: // only the first word can be a keyword
			words[i] = strings.TrimPrefix(Quote([]string{"x", w}), "x ")
		default:
			words[i] = Quote([]string{w})
		}
	}
	if p.test {
		words[0] = "["
		words = append(words, "]")
	}
	text := p.joint + strings.Join(words, " ")
	if p.input != "" {
		input := p.input
		if len(names) > 0 {
			input = names[len(p.reads)]
		}
		text += " <" + Quote([]string{input})
	}
	return text + p.after
}

// files returns the number of files that the piece reads.
func (p *piece) files() int {
	if p.input != "" {
		return len(p.reads) + 1
	}
	return len(p.reads)
}
