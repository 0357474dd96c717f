package shell

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// Class describes the possible effects of a command.
type Class string

// The classes. Every command that is not read_only needs an approval.
const (
	ReadOnly    Class = "read_only"   // it only reads; the class read of a tool
	Change      Class = "change"      // it changes what its words say
	Opaque      Class = "opaque"      // it may do more than its words say, because it lets others decide what runs
	Destructive Class = "destructive" // it deletes, overwrites or ends something that cannot be restored
)

var weight = map[Class]int{ReadOnly: 0, Change: 1, Opaque: 2, Destructive: 3}

// A Warning is a fact that a person should know before an approval.
type Warning struct {
	Code  string `json:"code"`
	Class Class  `json:"class"`
	Text  string `json:"text"`  // a sentence
	Start int    `json:"start"` // its place in the command, in bytes
	End   int    `json:"end"`
}

// maxWarnings is the maximum number of warnings. Of several warnings of one kind at the same place, only the first is
// kept.
const maxWarnings = 32

// A Judgment holds the facts about a command that are known without running it.
type Judgment struct {
	Class Class // the gravest class of the warnings; without a warning, Change or ReadOnly

	// Command is the text that is shown, hashed and executed: for a read_only command its words in canonical quotes
	// ([Quote]), for any other command the original text.
	Command string

	pieces []piece // of a read_only command, and of one with a Repository

	// Repository is the repository that a reading git command examines; nil for all other commands. The class of such a
	// command is opaque.
	Repository *Repository

	// Reads are the files and folders whose content a read_only command prints. A command with Reads may run without
	// approval only if all of them, after links are followed, are in folders that its user has allowed.
	Reads []string

	// Looks are the paths that a read_only command examines, including Reads. For a command with a Repository, they are
	// the paths that its other programs examine.
	Looks   []string
	Walks   bool     // it also examines everything below them; the host may need a GNU program for that
	Files   bool     // all of Reads must be files: given a folder, the command would read the files in it
	Private bool     // must be among the folders that may be read, although no word names them
	Needs   []string // folders that must be among those that may be read, although no word of the command names them

	// Names are the programs and builtins that the command names, without their folders. They include those after sudo,
	// env and similar programs, and those in the text of sh -c. An opaque command may run other programs too.
	Names []string

	Warnings []Warning
}

// Has reports whether there is a warning of the class. A destructive command may also be opaque.
func (j *Judgment) Has(c Class) bool {
	return slices.ContainsFunc(j.Warnings, func(w Warning) bool { return w.Class == c })
}

// Programs returns the programs of a read_only command with their arguments.
func (j *Judgment) Programs() (all [][]string) {
	for _, p := range j.pieces {
		all = append(all, p.argv)
	}
	return all
}

// AtHome reports whether a read_only command has a word that begins with the home directory.
func (j *Judgment) AtHome() bool {
	return slices.ContainsFunc(j.pieces, func(p piece) bool {
		return slices.ContainsFunc(p.argv, func(w string) bool { return strings.HasPrefix(w, "~") })
	})
}

// Line returns a read_only command in the form in which it runs, with home as the home directory. names, if any,
// replace the files and folders of Reads.
func (j *Judgment) Line(home string, names []string) string {
	var b strings.Builder
	for i := range j.pieces {
		p := &j.pieces[i]
		b.WriteString(p.text(home, names))
		names = names[min(p.files(), len(names)):]
	}
	return b.String()
}

// Judge judges a command that a shell with the grammar will run. It returns a ValidationError for the field "command"
// if a person could not read the command as the shell does: it is blank, over 8 KiB, has control or invisible
// characters, Unicode spaces or full-width characters, or cannot be parsed.
func Judge(command string, g Grammar) (Judgment, error) {
	file, wrong := parse(command, g)
	if wrong != "" {
		return Judgment{}, fault.Invalid("command", "The command %s.", wrong)
	}
	pieces := piecesOf(file)
	if j, ok := readOnly(pieces); ok {
		return j, nil
	}
	l := look{grammar: g, seen: map[any]bool{}}
	l.text(command, file)
	j := Judgment{Class: Change, Command: command, Names: l.names, Warnings: l.warnings}
	goesOn(j.Warnings)
	for _, w := range j.Warnings {
		if weight[w.Class] > weight[j.Class] {
			j.Class = w.Class
		}
	}
	if r, looks := repositoryOf(pieces); r != nil {
		j.Repository, j.Looks, j.pieces = r, looks, pieces
	}
	return j, nil
}

// goesOn changes the warnings about processes that a command leaves running. If another warning says that the processes
// belong to another user, or lack the command's environment, the host may not find and end them.
func goesOn(all []Warning) {
	hides := func(w Warning) bool { return w.Code == "privilege" || w.Code == "clears" }
	if !slices.ContainsFunc(all, hides) {
		return
	}
	for i := range all {
		if all[i].Code == "background" {
			const ended, goes = "is ended when the command ends", "may go on after the command"
			all[i].Text = strings.Replace(all[i].Text, ended, goes, 1)
		}
	}
}

// look collects the warnings for a command.
type look struct {
	grammar  Grammar
	warnings []Warning
	lightest int // index of the last warning with the lowest weight
	names    []string
	seen     map[any]bool    // names, inner texts and pipelines that were looked at
	counts   map[string]span // variables of loops that hold numbers, with the loops
	within   *span           // the position of the examined text within the command, if it is not the whole command
	depth    int             // nesting depth of the examined text
}

// deepest is the maximum depth at which nested texts are examined. The text around a deeper one has a warning in any
// case.
const deepest = 3

func (l *look) warn(at span, class Class, code, format string, args ...any) {
	if l.within != nil {
		at = *l.within
	}
	same := func(w Warning) bool { return w.Code == code && w.Start == at.Start }
	if !l.room(class) || slices.ContainsFunc(l.warnings, same) {
		return
	}
	l.warnings = append(l.warnings, Warning{Code: code, Class: class, Text: fmt.Sprintf(format, args...),
		Start: at.Start, End: at.End})
	if len(l.warnings) > maxWarnings {
		l.warnings = slices.Delete(l.warnings, l.lightest, l.lightest+1)
	}
	l.lightest = 0
	for i, w := range l.warnings {
		if weight[w.Class] <= weight[l.warnings[l.lightest].Class] {
			l.lightest = i
		}
	}
}

// room reports whether there is room for a warning of the class, or a less important warning could be dropped.
func (l *look) room(class Class) bool {
	return len(l.warnings) < maxWarnings || weight[class] > weight[l.warnings[l.lightest].Class]
}

func (l *look) name(name string) {
	if l.first("name " + name) {
		l.names = append(l.names, name)
	}
}

// first reports whether this is the first call with the value.
func (l *look) first(thing any) bool {
	if l.seen[thing] {
		return false
	}
	l.seen[thing] = true
	return true
}

// text examines a whole command.
func (l *look) text(command string, file *syntax.File) {
	if i := strings.IndexByte(command, '\r'); i >= 0 {
		l.warn(span{i, i + 1}, Opaque, "carriage_return", "Shells differ in what a carriage return is to them.")
	}
	outer := l.counts
	l.counts = counters(file)
	syntax.Walk(file, func(n syntax.Node) bool {
		l.node(n)
		return true
	})
	l.counts = outer
	l.continued(command)
}

// continued also examines a command without its line continuations. Shells join lines before they look for
// substitutions, and the parser does not always do so.
func (l *look) continued(command string) {
	i := strings.Index(command, "\\\n")
	if i < 0 {
		return
	}
	joined := strings.ReplaceAll(command, "\\\n", "")
	if !l.inner(joined, l.grammar, span{i, i + 1}) {
		l.warn(span{i, i + 1}, Opaque, "line_continuation", "Shells differ in how they put these lines together.")
	}
}

// inner examines a text within the command, and reports whether it could be parsed.
func (l *look) inner(text string, g Grammar, at span) bool {
	if l.depth == deepest {
		return false
	}
	if !l.first("text " + text) {
		return true
	}
	file, wrong := parse(text, g)
	if wrong != "" {
		return false
	}
	if l.within == nil {
		l.within = &at
		defer func() { l.within = nil }()
	}
	l.depth++
	l.text(text, file)
	l.depth--
	return true
}

func (l *look) node(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.Stmt:
		if (n.Background || n.Coprocess || n.Disown) && l.room(Opaque) {
			l.warn(place(n), Opaque, "background", "It starts a job in the background (&), which is ended when the "+
				"command ends.")
		}
	case *syntax.CoprocClause:
		l.warn(place(n), Opaque, "background", "It starts a job in the background (coproc), which is ended when the "+
			"command ends.")
	case *syntax.FuncDecl:
		l.warn(place(n), Opaque, "function", "It defines a function, which may stand for any other command.")
	case *syntax.CmdSubst, *syntax.ProcSubst:
		l.warn(place(n), Opaque, "substitution", "The output of a command becomes a part of this one.")
	case *syntax.ParamExp:
		l.variable(n)
	case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop, *syntax.TestClause:
		l.arithmetic(n)
	case *syntax.ArrayElem:
		l.index(n.Index, place(n))
	case *syntax.WordIter:
		l.sets(n.Name.Value, place(n.Name))
	case *syntax.BinaryCmd:
		l.pipeline(n)
	case *syntax.Redirect:
		l.redirect(n)
	case *syntax.DeclClause:
		l.declares(n)
	case *syntax.CallExpr:
		for _, a := range n.Assigns {
			l.assign(a)
		}
		if len(n.Args) > 0 {
			l.call(n.Args)
		}
	}
}

// pipeline warns about a download that is executed.
func (l *look) pipeline(b *syntax.BinaryCmd) {
	if b.Op != syntax.Pipe && b.Op != syntax.PipeAll || !l.first(b) {
		return
	}
	fetched := false
	for _, s := range l.piped(b) {
		names := namesIn(s)
		if fetched && slices.ContainsFunc(names, func(n string) bool { return interpreters[n] }) {
			l.warn(place(b), Opaque, "download_and_run", "It runs what it downloads.")
		}
		fetched = fetched || slices.ContainsFunc(names, func(n string) bool { return downloaders[n] })
	}
}

// piped returns the parts of a pipeline, from left to right.
func (l *look) piped(b *syntax.BinaryCmd) (parts []*syntax.Stmt) {
	for _, s := range []*syntax.Stmt{b.X, b.Y} {
		if more, ok := s.Cmd.(*syntax.BinaryCmd); ok && (more.Op == syntax.Pipe || more.Op == syntax.PipeAll) {
			l.first(more)
			parts = append(parts, l.piped(more)...)
			continue
		}
		parts = append(parts, s)
	}
	return parts
}

// namesIn returns the words of a simple command that may name a program after sudo, env and the like.
func namesIn(s *syntax.Stmt) (names []string) {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok {
		return nil
	}
	for _, w := range call.Args {
		if word, unclear := literal(w); unclear == nil {
			names = append(names, path.Base(word))
		}
	}
	return names
}

func (l *look) redirect(r *syntax.Redirect) {
	if r.N != nil {
		l.sets(strings.Trim(r.N.Value, "{}"), place(r))
	}
	target, unclear := "", (*unclear)(nil)
	if r.Word != nil {
		target, unclear = literal(r.Word)
	}
	switch {
	case strings.HasPrefix(target, "/dev/tcp/") || strings.HasPrefix(target, "/dev/udp/"):
		l.warn(place(r), Opaque, "network", "Bash makes a connection of this redirection.")
	case r.Word != nil && writes[r.Op] && runsLater.MatchString(path.Clean(cmp.Or(target, r.Word.Lit()))):
		l.warn(place(r), Opaque, "later", "%s", texts["written"])
	case !truncates[r.Op]:
	case harmless[target]:
	case strings.HasPrefix(target, "/dev/"):
		l.warn(place(r), Destructive, "device", "It writes to a device.")
	case unclear != nil:
		l.warn(place(r), Destructive, "overwrites", "It overwrites a file whose name cannot be seen here.")
	default:
		l.warn(place(r), Change, "overwrites", "It overwrites a file, if there is one of that name.")
	}
}

// truncates are the redirections that empty a file before they write to it.
var truncates = map[syntax.RedirOperator]bool{syntax.RdrOut: true, syntax.RdrClob: true, syntax.RdrAll: true,
	syntax.RdrAllClob: true}

// writes are the redirections that write to a file.
var writes = map[syntax.RedirOperator]bool{syntax.RdrOut: true, syntax.RdrClob: true, syntax.RdrAll: true,
	syntax.RdrAllClob: true, syntax.AppOut: true, syntax.AppAll: true, syntax.RdrInOut: true}

var harmless = map[string]bool{"/dev/null": true, "/dev/stdout": true, "/dev/stderr": true, "/dev/tty": true,
	"/dev/full": true}
