package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// readOnly returns the judgment of a command with these words, if it only looks; ok is false for every other command.
func readOnly(argv []string) (j Judgment, ok bool) {
	if len(argv) == 0 {
		return j, false
	}
	j.Argv, j.Class, j.Command, j.Names = argv, ReadOnly, Quote(argv), argv[:1]
	return j, j.looks()
}

// spelledOut returns the words of a command that is one program. All of the text must be printable ASCII in which no
// shell expands anything. For every other command spelledOut returns nothing.
func spelledOut(command string, file *syntax.File) (argv []string) {
	for _, r := range command {
		if r < ' ' || r > '~' || strings.ContainsRune("\\$`!#", r) {
			return nil
		}
	}
	if len(file.Stmts) != 1 {
		return nil
	}
	s := file.Stmts[0]
	call, isCall := s.Cmd.(*syntax.CallExpr)
	if !isCall || len(call.Assigns) > 0 || len(s.Redirs) > 0 || s.Negated || s.Background || s.Coprocess || s.Disown {
		return nil
	}
	for _, w := range call.Args {
		word, unclear := literal(w)
		if unclear != nil || strings.Contains(word, "'") {
			return nil
		}
		argv = append(argv, word)
	}
	return argv
}

// looks looks the command up in the table, and notes what it reads and looks at.
func (j *Judgment) looks() bool {
	argv := j.Argv
	for _, form := range formsOf()[argv[0]] {
		if slices.EqualFunc(form, argv, stands) {
			return true
		}
	}
	if looks, ok := searchers[argv[0]]; ok {
		return looks(j, argv[1:])
	}
	l, ok := lookers[argv[0]]
	if !ok {
		return false
	}
	operands, ok := l.flags(argv[1:])
	if !ok || len(operands) < l.least || l.most >= 0 && len(operands) > l.most {
		return false
	}
	for i, at := range operands {
		at++ // the program's name comes first
		if l.pattern && i == 0 {
			continue
		}
		if !l.operand(argv[at]) {
			return false
		}
		j.Looks = append(j.Looks, argv[at])
		if l.content {
			j.Reads, j.reads = append(j.Reads, argv[at]), append(j.reads, at)
		}
	}
	j.Files = l.files
	if j.Walks = l.goesBelow(argv[1:]); j.Walks && len(j.Looks) == 0 {
		j.Looks = []string{"."}
	}
	return true
}

// goesBelow reports whether the program looks at what lies below a folder.
func (l looker) goesBelow(args []string) bool {
	flagged := func(letters, name string) bool {
		return slices.ContainsFunc(args, func(a string) bool {
			return a == name || len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.ContainsAny(a, letters)
		})
	}
	return l.walks != "" && (l.walks == always || flagged(l.walks, "--recursive")) &&
		!(l.stays != "" && flagged(l.stays, "--one-file-system"))
}

// stands reports whether a word of a form stands for the word.
func stands(form, word string) bool {
	switch form {
	case "NAME":
		return isName(word)
	case "COLUMNS":
		return isColumns(word)
	case "SORT":
		keys, ok := strings.CutPrefix(word, "--sort=")
		return ok && isColumns(strings.TrimLeft(keys, "+-"))
	}
	return word == form
}

// flags checks the flags, and returns the places of the operands.
func (l looker) flags(args []string) (operands []int, ok bool) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case l.pattern && a == "-e": // the text that is looked for, in the place of the first operand
			if i++; i == len(args) || slices.Contains(args[:i-1], "-e") {
				return nil, false
			}
			operands = append([]int{i}, operands...)
		case a == "--":
			for i++; i < len(args); i++ {
				operands = append(operands, i)
			}
		case strings.HasPrefix(a, "--"):
			name, value, has := strings.Cut(a[2:], "=")
			if has {
				name += "="
			}
			if !slices.Contains(strings.Fields(l.long), name) || has && !l.value(strings.TrimLeft(value, "+-")) {
				return nil, false
			}
		case l.counts && len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "0123456789") == "":
		case len(a) > 1 && a[0] == '-':
			value, next, ok := l.letters(a[1:])
			if next {
				if i++; i == len(args) {
					return nil, false
				}
				value = args[i]
			}
			valued := next || value != ""
			if !ok || valued && (!l.value(value) || l.counts && !isCount(value)) {
				return nil, false
			}
		default:
			operands = append(operands, i)
		}
	}
	return operands, true
}

// letters checks flags of one letter behind one dash; next reports whether the next word is the last one's value.
func (l looker) letters(flags string) (value string, next, ok bool) {
	for i, r := range flags {
		rest := flags[i+1:]
		switch {
		case strings.ContainsRune(l.short, r):
		case strings.ContainsRune(l.valued+l.apart, r) && rest == "":
			return "", true, true
		case strings.ContainsRune(l.valued+l.joined, r) && rest != "":
			return rest, false, true
		default:
			return "", false, false
		}
	}
	return "", false, true
}

// value reports whether a flag may have the value.
func (l looker) value(v string) bool { return l.values == nil || l.values(v) }

func isPath(s string) bool {
	return s != "" && !isRemote(s) && (s[0] == '/' || s[0] == '.' || s[0] == '_' || isLetterOrDigit(s[0]))
}

// isRemote reports whether a look at a path may have an automounter or a file system of a user's connect or run
// something, or leads to what another process has open.
func isRemote(s string) bool {
	first, rest, _ := strings.Cut(strings.TrimPrefix(path.Clean(s), "/"), "/")
	second, more, _ := strings.Cut(rest, "/")
	switch {
	case !strings.HasPrefix(s, "/"):
		return false
	case first == "proc":
		return more != "" && (second == "self" || second == "thread-self" || strings.Trim(second, "0123456789") == "")
	case first == "dev":
		return second == "fd" || second == "tcp" || second == "udp"
	case first == "run":
		return second == "user"
	}
	return automounted[first]
}

var automounted = words("net misc afs auto autofs automount smb hosts")

func isLetterOrDigit(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// isName reports whether s can be the name of a user, a program, a package or a service.
func isName(s string) bool {
	for _, r := range s {
		if !isPlain(r) || r == '/' || r == '=' {
			return false
		}
	}
	return s != "" && s[0] != '-' && s[0] != '+'
}

// isCount reports whether s is a number of lines or bytes, and so no path of a file that somebody would hide.
var isCount = lazyregexp.New(`^[-+]?[0-9]+[A-Za-z]*$`).MatchString

// hasPercent reports whether s can be a format of stat, and is hardly a path.
func hasPercent(s string) bool { return strings.Contains(s, "%") }

func isFormat(s string) bool { return strings.HasPrefix(s, "+") }

// isBSD reports whether s is letters of ps without a dash; e, which shows the environment, is not among them.
func isBSD(s string) bool { return s != "" && strings.Trim(s, "auxwfjlhmT") == "" }

// isColumns reports whether s is a list of columns of ps, or of what it selects by. None begins with a dash: where ps
// takes no value from the next word, that would be more flags.
func isColumns(s string) bool {
	if strings.HasPrefix(s, "-") {
		return false
	}
	for c := range strings.SplitSeq(s, ",") {
		if strings.Contains(strings.ToLower(c), "env") || strings.Trim(c, "-+%_=:. ") == "" ||
			!isName(strings.Trim(c, "-+=")) {
			return false
		}
	}
	return true
}
