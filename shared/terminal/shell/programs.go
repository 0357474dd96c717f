package shell

import (
	_ "embed"
	"path"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

//go:embed options.txt
var optionsText string

// A program is a known program with its listed options. With these options it runs no other program.
type program struct {
	letters map[byte]bool // true: the letter has a value
	names   map[string]bool
	single  bool // some long names have a single dash
}

// programs are the known programs by their names, and by NAME/SUBCOMMAND.
var programs = sync.OnceValue(func() map[string]program { return parsePrograms(optionsText) })

func parsePrograms(text string) map[string]program {
	all := map[string]program{}
	for line := range strings.Lines(strings.ReplaceAll(text, "\n  ", " ")) {
		heads, spec, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(spec)
		p := program{letters: map[byte]bool{}, names: words(strings.Join(fields[1:], " "))}
		for i, c := range []byte(strings.Trim(fields[0], "-")) {
			if c != ':' {
				p.letters[c] = strings.HasPrefix(fields[0][i+1:], ":")
			}
		}
		p.single = slices.ContainsFunc(fields[1:], func(name string) bool { return name[0] == '-' })
		for name := range strings.FieldsSeq(heads) {
			all[name] = p
		}
	}
	return all
}

// unknown returns the index of the first argument that is an unlisted option, or -1.
func (p program) unknown(args []string) int {
	for i, a := range args {
		if a == "--" && p.ends(args[:i]) {
			return -1
		}
		if len(a) > 1 && a[0] == '-' && a != "--" && !p.has(a) {
			return i
		}
	}
	return -1
}

// unlisted is like [program.unknown] for a command line. The first word of tar may be letters without a dash, whose
// values follow that word.
func (p program) unlisted(args []string) int {
	if path.Base(args[0]) == "tar" && len(args) > 1 && args[1] != "" && args[1][0] != '-' {
		for _, c := range []byte(args[1]) {
			if _, known := p.letters[c]; !known {
				return 0
			}
		}
	}
	return p.unknown(args[1:])
}

// ends reports whether -- ends the options before it. After an option that may take the next word, -- can be the
// option's value instead.
func (p program) ends(before []string) bool {
	if p.single || len(before) == 0 {
		return !p.single
	}
	last := before[len(before)-1]
	if len(last) < 2 || last[0] != '-' {
		return true
	}
	next, ok := p.separate(last)
	return ok && !next && last[1] != '-'
}

// has reports whether an option is listed.
func (p program) has(option string) bool {
	name, _, _ := strings.Cut(option, "=")
	switch {
	case strings.HasPrefix(option, "--"):
		return p.names[name[2:]]
	case p.names[name], strings.Trim(option[1:], "0123456789") == "":
		return true
	}
	for _, c := range []byte(option[1:]) {
		valued, ok := p.letters[c]
		if !ok || valued {
			return ok
		}
	}
	return true
}

// systemFolders are the folders in which the name of a program identifies it.
var systemFolders = words("/bin /usr/bin /usr/local/bin /sbin /usr/sbin /usr/local/sbin")

// opaque warns about a command that may do more than its words say, because the program or one of its options is
// unknown. It adds nothing if there is a more precise warning.
func (l *look) opaque(args []string, words []*syntax.Word) {
	dir, name := path.Split(args[0])
	runs := func(r risk) bool { return r.class == Opaque }
	if slices.ContainsFunc(risksOf()[name], func(r risk) bool { return runs(r) && r.fits(name, args[1:]) }) {
		return
	}
	p, known := programs()[name]
	switch {
	case dir == "" && builtins[name] || isLoader(name) || name == "sed" || name == "echo":
		return
	case !known || dir != "" && !systemFolders[path.Clean(dir)]:
		l.warn(place(words[0]), Opaque, "unknown_program", "This program is not a known one; it may run others.")
		return
	}
	if i := p.unlisted(args); i >= 0 {
		l.warn(place(words[i+1]), Opaque, "unknown_option",
			"This option is not a known one; it may run other programs.")
		return
	}
	for _, w := range words[1:] {
		if slices.ContainsFunc(risksOf()[name], runs) && mayBeOption(w) {
			l.warn(place(w), Opaque, "hidden_option", "This may become an option that runs another program.")
		}
	}
}

// mayBeOption reports whether a word that is not spelled out may begin with a dash.
func mayBeOption(w *syntax.Word) bool {
	if _, unclear := literal(w); unclear == nil || len(w.Parts) == 0 {
		return false
	}
	lit, ok := w.Parts[0].(*syntax.Lit)
	return !ok || strings.ContainsAny(lit.Value[:1], "*?[{-\\$`")
}

// call examines a simple command.
func (l *look) call(words []*syntax.Word) {
	args := make([]string, len(words))
	for i, w := range words {
		word, unclear := literal(w)
		if unclear != nil && i == 0 && w.Lit() == "[" {
			word, unclear = "[", nil
		}
		if unclear != nil && i == 0 {
			l.warn(place(w), Opaque, "computed_name", "Which command this is only the shell can tell (%s).",
				unclear.what)
			return
		}
		args[i] = word
	}
	l.named(args, words)
}

// named examines a simple command with a literal name.
func (l *look) named(args []string, words []*syntax.Word) {
	if text := words[0].Lit(); text != args[0] {
		l.warn(place(words[0]), Opaque, "disguised_name", "The command is %.100q, written so that it does not show.",
			args[0])
	}
	l.carried(args, words, 0)
	if l.within == nil { // the text around it is opaque already
		l.opaque(args, words)
	}
}

// program examines a program and its arguments. args leaves out arguments that are not literal.
func (l *look) program(args []string, words []*syntax.Word) {
	name := path.Base(args[0])
	l.name(name)
	at := place(words[0])
	safe := onlyLooks(name, args[1:])
	for _, r := range risksOf()[name] {
		if r.fits(name, args[1:]) && !(safe && r.class == Destructive) {
			l.warn(at, r.class, r.code, "%s", r.text)
		}
	}
	l.variables(append([]string{name}, args[1:]...), words)
	if indexed[name] && slices.ContainsFunc(args[1:], func(a string) bool { return strings.Contains(a, "[") }) {
		l.warn(span{at.Start, place(words[len(words)-1]).End}, Opaque, "evaluated",
			"Bash evaluates the text in the brackets, and may run it.")
	}
	switch {
	case strings.HasPrefix(name, "mkfs") && !safe:
		l.warn(at, Destructive, "device", "%s", texts["device"])
	case isLoader(name):
		l.warn(at, Opaque, "runs", "%s", texts["runs"])
	case name == "sed" && !printsLines(args[1:]):
		l.warn(at, Opaque, "runs", "A script of sed can run commands and write files.")
	}
	if places[name] {
		l.operands(name, asWritten(args, words), words)
	}
	if i := textIn(args); i > 0 && textual[name] {
		l.inner(args[i], Bash, place(words[i]))
	}
}

// places are the programs of [carrier] and [written].
var places = words("apt apt-get aptitude cp curl dd install ln mv rsync systemctl tar tee wget")

// operands warns of an operand that decides which programs run, now or later.
func (l *look) operands(name string, args []string, words []*syntax.Word) {
	if at := written(name, args); at > 0 {
		l.warn(place(words[at]), Opaque, "later", "%s", texts["written"])
	}
	if at := carrier(name, args); at > 0 {
		l.warn(place(words[at]), Opaque, "runs", "%s", texts["runs"])
	}
}

// carrier returns the index of an operand that decides which programs run: an archive on another machine, which tar
// lets another program read or write, a file with a package or a unit, or a key in a module that curl loads. It returns
// 0 if there is none.
func carrier(name string, args []string) int {
	var carries func(string) bool
	switch name {
	case "tar":
		carries = func(a string) bool {
			machine, _, remote := strings.Cut(strings.TrimPrefix(a, "--file="), ":")
			return remote && !strings.HasPrefix(machine, "--") && !strings.Contains(machine, "/") &&
				!slices.Contains(args, "--force-local")
		}
	case "apt", "apt-get", "aptitude": // the slash in nginx/stable names a release
		carries = func(a string) bool { return beginsWith(a, "/,.,~") }
	case "systemctl":
		carries = func(a string) bool { return strings.Contains(a, "/") && a[0] != '-' }
	case "curl":
		carries = func(a string) bool { return strings.Contains(strings.ToLower(a), "pkcs11:") }
	default:
		return 0
	}
	return slices.IndexFunc(args[1:], carries) + 1
}

// asWritten returns the arguments, with the text of those that are not literal, such as ~/x.deb.
func asWritten(args []string, words []*syntax.Word) []string {
	all := slices.Clone(args)
	for i, a := range all {
		if a == "" {
			all[i] = words[i].Lit()
		}
	}
	return all
}

// Configured reports whether a program reads a configuration of its user that can make it do more than its words say,
// in a clean environment too. curl finds ~/.curlrc without HOME, unless its first argument is -q.
func Configured(argv []string) bool {
	if path.Base(argv[0]) != "curl" {
		return false
	}
	return len(argv) < 2 || !strings.HasPrefix(argv[1], "-q") && argv[1] != "--disable"
}
