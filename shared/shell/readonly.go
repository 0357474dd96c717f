package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// readOnly returns the words of a command that only looks, and what it prints the content of; ok is false for every
// other one. All of the text is printable ASCII in which no shell expands anything: a command in which something would
// have to be expanded is not looked at further.
func readOnly(command string, file *syntax.File) (argv, reads []string, ok bool) {
	for _, r := range command {
		if r < ' ' || r > '~' || strings.ContainsRune("\\$`!#", r) {
			return nil, nil, false
		}
	}
	if len(file.Stmts) != 1 {
		return nil, nil, false
	}
	s := file.Stmts[0]
	call, isCall := s.Cmd.(*syntax.CallExpr)
	if !isCall || len(call.Assigns) > 0 || len(s.Redirs) > 0 || s.Negated || s.Background || s.Coprocess || s.Disown {
		return nil, nil, false
	}
	for _, w := range call.Args {
		word, unclear := literal(w)
		if unclear != nil || strings.Contains(word, "'") {
			return nil, nil, false
		}
		argv = append(argv, word)
	}
	reads, ok = looks(argv)
	return argv, reads, ok
}

// looks looks a command up in the table.
func looks(argv []string) (reads []string, ok bool) {
	for _, form := range formsOf[argv[0]] {
		if slices.EqualFunc(argv, form, func(a, f string) bool { return a == f || f == "NAME" && isName(a) }) {
			return nil, true
		}
	}
	l, ok := lookers[argv[0]]
	if !ok {
		return nil, false
	}
	operands, ok := l.flags(argv[1:])
	if !ok || len(operands) < l.least || l.most >= 0 && len(operands) > l.most {
		return nil, false
	}
	for i, o := range operands {
		if l.pattern && i == 0 {
			continue
		}
		if !l.operand(o) {
			return nil, false
		}
		if l.content {
			reads = append(reads, o)
		}
	}
	return reads, true
}

// flags checks the flags, and returns the operands.
func (l looker) flags(args []string) (operands []string, ok bool) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return append(operands, args[i+1:]...), true
		case strings.HasPrefix(a, "--"):
			name, value, has := strings.Cut(a[2:], "=")
			if has {
				name += "="
			}
			if !slices.Contains(strings.Fields(l.long), name) || !l.value(value) {
				return nil, false
			}
		case len(a) > 1 && a[0] == '-':
			value, next, ok := l.letters(a[1:])
			if next {
				if i++; i == len(args) {
					return nil, false
				}
				value = args[i]
			}
			if !ok || !l.value(value) {
				return nil, false
			}
		default:
			operands = append(operands, a)
		}
	}
	return operands, true
}

// letters checks flags of one letter behind one dash; next reports whether the next word is the last one's value.
func (l looker) letters(flags string) (value string, next, ok bool) {
	for i, r := range flags {
		switch {
		case strings.ContainsRune(l.short, r):
		case strings.ContainsRune(l.valued, r):
			return flags[i+1:], i+1 == len(flags), true
		default:
			return "", false, false
		}
	}
	return "", false, true
}

// value reports whether a flag may have the value.
func (l looker) value(v string) bool { return l.values == nil || v == "" || l.values(v) }

func isPath(s string) bool {
	return s != "" && (s[0] == '/' || s[0] == '.' || s[0] == '_' || isLetterOrDigit(s[0]))
}

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

func isFormat(s string) bool { return strings.HasPrefix(s, "+") }

// isBSD reports whether s is letters of ps without a dash; e, which shows the environment, is not among them.
func isBSD(s string) bool { return s != "" && strings.Trim(s, "auxwfjlhmT") == "" }

// isColumns reports whether s is a list of columns of ps, or of what it selects by.
func isColumns(s string) bool {
	for c := range strings.SplitSeq(s, ",") {
		if strings.Contains(strings.ToLower(c), "env") || strings.Trim(c, "-+%_=:. ") == "" ||
			!isName(strings.Trim(c, "-+=")) {
			return false
		}
	}
	return true
}
