package shell

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A List is a command that needs no shell: pipelines, in order. A shell would only start programs with known words,
// connect their streams, and check exit codes.
type List []Pipeline

// A Pipeline is one simple command, or several. Each one reads the output of the command before it.
type Pipeline struct {
	When     Condition
	Not      bool       // inverts the exit code: 0 becomes 1, any other 0
	Commands [][]string // each a program and its arguments
}

// Condition determines from the previous exit code whether a pipeline runs.
type Condition string

// The conditions, as the operators between pipelines.
const (
	Always      Condition = ";"
	IfSucceeded Condition = "&&"
	IfFailed    Condition = "||"
)

// DeniedError is the reason why a command is not a [List], or is not allowed.
type DeniedError struct {
	Reason     string // the part of the command that was not allowed; begins in lower case, without a full stop
	Start, End int    // its place in the command, in bytes; both 0: the whole command
}

func (e *DeniedError) Error() string { return e.Reason }

func denied(at span, format string, args ...any) error {
	return &DeniedError{fmt.Sprintf(format, args...), at.Start, at.End}
}

// Allowed lists the beginnings of commands that may run, each as its words: "git log" is the beginning of git log -5,
// and not of git logger. Only options and operands that are known to be harmless may follow an entry, so "git log" does
// not allow git log --output=FILE, and "find" does not allow find -fprint FILE. Nothing may follow an entry of an
// unknown program, or an entry with an operand of a program that changes something, such as "cp a b". Any words may
// follow an entry whose last word is [Anything].
type Allowed [][]string

// Allow returns the commands that begin with one of the entries, each written as a simple command. The error lists all
// invalid entries.
func Allow(entries ...string) (Allowed, error) {
	var allowed Allowed
	var wrong []error
	for _, entry := range entries {
		list, err := read(entry)
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Errorf("%q: %w", entry, err))
		case len(list) != 1 || len(list[0].Commands) != 1 || list[0].Not:
			wrong = append(wrong, fmt.Errorf("%q must be the beginning of one command", entry))
		default:
			allowed = append(allowed, list[0].Commands[0])
		}
	}
	return allowed, errors.Join(wrong...)
}

// Parse parses a command. Simple commands may be joined by ; && || | ! and line ends, and each must begin with an entry
// of a. Parse returns a *[DeniedError] for substitutions, expansions, redirections, assignments, functions, background
// jobs, compound commands and shell builtins (eval, alias, cd and so on), whatever the entries are.
func (a Allowed) Parse(command string) (List, error) {
	list, err := read(command)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		for _, argv := range p.Commands {
			if err := a.check(argv); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// Anything is the last word of an entry that any words may follow.
const Anything = "..."

// check returns the reason why a simple command may not run, or nil.
func (a Allowed) check(argv []string) error {
	var why error
	for _, entry := range a {
		prefix, free := entry, false
		if n := len(entry) - 1; n > 0 && entry[n] == Anything {
			prefix, free = entry[:n], true
		}
		if !begins(argv, prefix) {
			continue
		}
		extra := surplus(argv, len(prefix))
		if free || extra == "" {
			return nil
		}
		why = denied(span{}, "%s may have no %.100q: only programs known not to run or write something else may "+
			"follow %q; write it out as an entry, or %q for anything", clipped(prefix), extra, Quote(prefix),
			Quote(prefix)+" "+Anything)
	}
	if why == nil {
		why = denied(span{}, "%s is not among the commands that may run (%s)", clipped(argv), a)
	}
	return why
}

func begins(argv, entry []string) bool {
	return len(argv) >= len(entry) && slices.Equal(argv[:len(entry)], entry)
}

// surplus returns a word after the first n that could make the program do more than the n words say, or "" if there is
// none. If the tables of read-only commands contain the program, or a command with the same first n words, the whole
// command must match them. For another known program, an option must be listed and have no risk. Nothing may follow the
// words of an unknown program, or an operand of a program that changes something.
func surplus(argv []string, n int) string {
	if len(argv) == n || reads(argv) {
		return ""
	}
	name, rest := argv[0], argv[n:]
	p, verbs, ok := programOf(argv, n)
	named := slices.ContainsFunc(argv[min(1+verbs, n):n], isOperand)
	switch {
	case !ok || isLooker(name) || isAmong(verbed+" apt-get", name) || reads(argv[:n]) || onlyLooks(name, argv[1:n]):
		if ok && onlyLooks(name, argv[1:]) {
			return ""
		}
		return rest[0]
	case named && verbs == 0 && !inert[name]:
		return rest[0]
	}
	if i := p.unknown(rest); i >= 0 {
		return rest[i]
	}
	if i := slices.IndexFunc(rest, func(a string) bool { return runsMore(name, a, named) }); verbs > 0 && i >= 0 {
		return rest[i]
	}
	if at := carrier(name, argv); at >= n {
		return argv[at]
	}
	if slices.ContainsFunc(risksOf()[name], func(r risk) bool {
		return len(r.with) > 0 && r.fits(name, argv[1:]) && !r.fits(name, argv[1:n])
	}) {
		return rest[0]
	}
	return ""
}

// programOf returns the entry of a command's program, or of its verb; then verbs is 1. ok is false if the program is
// not known, or if the verb is not among the first n words.
func programOf(argv []string, n int) (p program, verbs int, ok bool) {
	p, ok = programs()[argv[0]]
	if len(argv) > 1 && (!ok || n > 1) {
		if of, isVerb := programs()[argv[0]+"/"+argv[1]]; isVerb {
			return of, 1, n > 1
		}
	}
	return p, 0, ok
}

// inert lists known programs that change nothing with their listed options, but are in no table of read-only commands.
var inert = words("jq ping traceroute tracepath dig host nslookup test sleep which gofmt")

// reads reports whether a command only reads.
func reads(argv []string) bool {
	return (&Judgment{}).looks(&piece{argv: slices.Clone(argv), fed: true})
}

func isOperand(a string) bool { return !strings.HasPrefix(a, "-") }

// runsMore reports whether an argument makes go or git run more than the verb says: a package from elsewhere, another
// package than the named one, or gpg, which some git formats use to verify signatures.
func runsMore(name, a string, named bool) bool {
	if name == "go" {
		return isOperand(a) && (strings.Contains(a, "@") || strings.HasPrefix(a, "/") ||
			named && strings.ContainsAny(a, "./") || slices.Contains(strings.Split(a, "/"), ".."))
	}
	option, value, _ := strings.Cut(a, "=")
	return isAmong("--format --pretty", option) && !isPretty(value)
}

// String lists the entries.
func (a Allowed) String() string {
	if len(a) == 0 {
		return "none"
	}
	entries := make([]string, len(a))
	for i, argv := range a {
		entries[i] = Quote(argv)
	}
	return strings.Join(entries, ", ")
}

// clipped returns the first words of a command, for a message.
func clipped(argv []string) string {
	const few = 3
	if len(argv) > few {
		return fmt.Sprintf("%.100q", Quote(argv[:few])+" …")
	}
	return fmt.Sprintf("%.100q", Quote(argv))
}

// read parses a command in bash's grammar, which includes all constructs of POSIX. A list may not contain the
// constructs that bash and POSIX interpret differently.
func read(command string) (List, error) {
	file, wrong := parse(command, Bash)
	if wrong != "" {
		return nil, denied(span{}, "the command %s", wrong)
	}
	if i := strings.IndexByte(command, '\r'); i >= 0 {
		return nil, denied(span{i, i + 1}, "a carriage return is read differently by different shells")
	}
	var r reader
	for _, s := range file.Stmts {
		r.list(s, Always)
	}
	return r.read, r.err
}

// reader turns statements into pipelines. It keeps the first error.
type reader struct {
	read List
	err  error
}

func (r *reader) deny(at span, format string, args ...any) {
	if r.err == nil {
		r.err = denied(at, format, args...)
	}
}

// list adds the pipelines of an and-or list. Both operators are left-associative with equal precedence, so the right
// side is one pipeline.
func (r *reader) list(s *syntax.Stmt, when Condition) {
	if bin, ok := s.Cmd.(*syntax.BinaryCmd); ok && (bin.Op == syntax.AndStmt || bin.Op == syntax.OrStmt) {
		r.plainly(s)
		r.list(bin.X, when)
		r.list(bin.Y, map[syntax.BinCmdOperator]Condition{syntax.AndStmt: IfSucceeded, syntax.OrStmt: IfFailed}[bin.Op])
		return
	}
	p := Pipeline{When: when, Not: s.Negated}
	r.pipe(s, &p)
	r.read = append(r.read, p)
}

func (r *reader) pipe(s *syntax.Stmt, p *Pipeline) {
	r.plainly(s)
	switch cmd := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		if cmd.Op != syntax.Pipe {
			r.deny(place(cmd), "%s is a redirection; only |, && and || join commands", cmd.Op)
			return
		}
		if cmd.X.Negated || cmd.Y.Negated {
			r.deny(place(cmd), "! within a pipeline is read differently by different shells")
		}
		r.pipe(cmd.X, p)
		r.pipe(cmd.Y, p)
	case *syntax.CallExpr:
		if argv := r.simple(cmd); argv != nil {
			p.Commands = append(p.Commands, argv)
		}
	case nil:
		r.deny(place(s), "there is no command")
	default:
		r.deny(place(s), "%s is not a simple command", construct(cmd))
	}
}

// plainly denies each part of a statement except its command.
func (r *reader) plainly(s *syntax.Stmt) {
	switch {
	case s.Background || s.Coprocess || s.Disown:
		r.deny(place(s), "a background job (&) would outlive the command")
	case len(s.Redirs) > 0:
		r.deny(place(s.Redirs[0]), "a redirection (%s) is not allowed", s.Redirs[0].Op)
	}
}

func (r *reader) simple(call *syntax.CallExpr) (argv []string) {
	if len(call.Assigns) > 0 {
		r.deny(place(call.Assigns[0]), "an assignment is not allowed")
		return nil
	}
	for _, w := range call.Args {
		word, unclear := literal(w)
		if unclear != nil {
			r.deny(unclear.span, "%s is not allowed: the words of a command must be spelled out", unclear.what)
			return nil
		}
		argv = append(argv, word)
	}
	if builtins[argv[0]] {
		r.deny(place(call.Args[0]), "%s is built into shells, and no shell runs this", argv[0])
	}
	return argv
}

// construct names a compound command.
func construct(cmd syntax.Command) string {
	switch cmd.(type) {
	case *syntax.FuncDecl:
		return "a function"
	case *syntax.Subshell:
		return "a subshell"
	case *syntax.Block:
		return "a group in braces"
	case *syntax.DeclClause, *syntax.LetClause:
		return "a declaration"
	case *syntax.TimeClause:
		return "time (a keyword of bash)"
	case *syntax.CoprocClause:
		return "a coprocess"
	case *syntax.TestClause, *syntax.ArithmCmd:
		return "an expression of bash"
	}
	return "a compound command"
}
