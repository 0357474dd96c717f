package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Contents returns the files whose whole content passes through a command: the files that cat prints, and the files
// that the command overwrites with its own text. Paths are spelled as in the command, relative to its current folder;
// moved reports that the command changes that folder. Paths that only a shell could determine are left out. A command
// that Judge refuses has none.
func Contents(command string, g Grammar) (prints, writes []string, moved bool) {
	file, wrong := parse(command, g)
	if wrong != "" {
		return nil, nil, false
	}
	c := contents{}
	for _, s := range file.Stmts {
		c.statement(s, false)
	}
	return c.prints, c.writes, c.dir != ""
}

// Excerpts returns the files from which a command prints some lines: with head, tail or sed -n, or with cat piped into
// one of them. Paths are as in [Contents].
func Excerpts(command string, g Grammar) []string {
	file, wrong := parse(command, g)
	if wrong != "" {
		return nil
	}
	c := contents{}
	for _, s := range file.Stmts {
		c.statement(s, false)
	}
	return c.excerpts
}

// contents looks for files in the statements of a command.
type contents struct {
	dir              string // the directory that the command has changed into
	prints, writes   []string
	excerpts, chosen []string // chosen: the files that cat passes to the next command of a pipeline
}

// statement examines a statement. fed reports that its input is a text within the command.
func (c *contents) statement(s *syntax.Stmt, fed bool) {
	for _, r := range s.Redirs {
		fed = fed || r.Hdoc != nil || r.Op == syntax.WordHdoc
	}
	switch cmd := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		piped := cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll
		if piped {
			before := contents{dir: c.dir}
			before.statement(cmd.X, false)
			c.chosen = append(before.prints, before.excerpts...)
		} else {
			c.statement(cmd.X, false)
		}
		c.statement(cmd.Y, piped && ownText(cmd.X))
		c.chosen = nil
	case *syntax.CallExpr:
		c.call(spelled(cmd), s, fed)
	case *syntax.Block:
		c.statements(cmd.Stmts)
	case *syntax.Subshell:
		c.statements(cmd.Stmts)
	}
}

func (c *contents) statements(all []*syntax.Stmt) {
	for _, s := range all {
		c.statement(s, false)
	}
}

func (c *contents) call(argv []string, s *syntax.Stmt, fed bool) {
	if len(argv) == 0 {
		return
	}
	operands := operandsOf(argv[1:])
	out, redirected := output(s)
	switch name := path.Base(argv[0]); {
	case name == "cd" && len(operands) == 1:
		c.dir = c.at(operands[0])
	case !redirected && chooses(name, argv):
		if name == "sed" && len(operands) > 0 {
			operands = operands[1:] // its script
		}
		c.excerpts = append(append(c.excerpts, c.all(operands)...), c.chosen...)
	case name == "cat" && !redirected:
		c.prints = append(c.prints, c.all(operands)...)
	case name == "tee" && fed && !slices.Contains(argv, "-a") && !slices.Contains(argv, "--append"):
		c.writes = append(c.writes, c.all(operands)...)
	case out != "" && (name == "cat" && fed && len(operands) == 0 || name == "echo" || name == "printf"):
		c.writes = append(c.writes, c.at(out))
	}
}

// chooses reports whether a program prints some lines of files. The value of an option counts as a file that does not
// exist.
func chooses(name string, argv []string) bool {
	return name == "head" || name == "tail" || name == "sed" && slices.Contains(argv, "-n")
}

func (c *contents) all(paths []string) (at []string) {
	for _, p := range paths {
		at = append(at, c.at(p))
	}
	return at
}

func (c *contents) at(p string) string {
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(c.dir, p)
}

// ownText reports whether the statement prints a text that the command contains.
func ownText(s *syntax.Stmt) bool {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok {
		return false
	}
	argv := spelled(call)
	if len(argv) == 0 {
		return false
	}
	name := path.Base(argv[0])
	heredoc := slices.ContainsFunc(s.Redirs, func(r *syntax.Redirect) bool { return r.Hdoc != nil })
	return name == "echo" || name == "printf" || name == "cat" && heredoc
}

// output returns the file that the statement's output overwrites, if any, and whether the output is redirected.
func output(s *syntax.Stmt) (file string, redirected bool) {
	for _, r := range s.Redirs {
		if r.N != nil && r.N.Value != "1" || r.Word == nil || r.Hdoc != nil || r.Op == syntax.RdrIn ||
			r.Op == syntax.WordHdoc {
			continue
		}
		redirected = true
		if target, unclear := literal(r.Word); truncates[r.Op] && unclear == nil && !harmless[target] {
			file = target
		}
	}
	return file, redirected
}

// spelled returns the words of a simple command, or nil if only the shell could determine one of them. The words of
// echo and printf are only text, so these may be undetermined.
func spelled(call *syntax.CallExpr) (argv []string) {
	for i, w := range call.Args {
		word, unclear := literal(w)
		switch {
		case unclear == nil:
			argv = append(argv, word)
		case i > 0 && (argv[0] == "echo" || argv[0] == "printf"):
			argv = append(argv, "")
		default:
			return nil
		}
	}
	return argv
}

func operandsOf(args []string) (operands []string) {
	for i, a := range args {
		if a == "--" {
			return append(operands, args[i+1:]...)
		}
		if a != "" && !strings.HasPrefix(a, "-") {
			operands = append(operands, a)
		}
	}
	return operands
}
