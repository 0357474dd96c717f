package shell

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// readOnly returns the judgment of a line whose programs only read. ok is false for every other line.
func readOnly(pieces []piece) (j Judgment, ok bool) {
	for i := range pieces {
		p := &pieces[i]
		var one Judgment
		if !one.looks(p) {
			return j, false
		}
		if p.input != "" {
			one.Reads, one.Looks, one.Files = append(one.Reads, p.input), append(one.Looks, p.input), true
		}
		j.Reads, j.Looks = append(j.Reads, one.Reads...), append(j.Looks, one.Looks...)
		j.Needs, j.Walks, j.Files = append(j.Needs, one.Needs...), j.Walks || one.Walks, j.Files || one.Files
		j.Private = j.Private || one.Private
		for _, name := range append([]string{p.argv[0]}, one.Names...) {
			if !slices.Contains(j.Names, name) {
				j.Names = append(j.Names, name)
			}
		}
	}
	j.pieces, j.Class = pieces, ReadOnly
	j.Command = j.Line("", nil)
	return j, len(pieces) > 0
}

// looks finds a program in the tables, and records which files and folders it reads.
func (j *Judgment) looks(p *piece) bool {
	if p.argv[0] == "ps" {
		lookers["ps"].join(p) // before the forms are compared
	}
	argv := p.argv
	if len(p.globs) == 0 {
		for _, form := range formsOf()[argv[0]] {
			if slices.EqualFunc(form, argv, stands) {
				return true
			}
		}
	}
	one, read := *j, *p
	if looks, ok := searchers[argv[0]]; ok && (len(p.globs) == 0 || argv[0] == "find") && looks(&one, &read) {
		*j, *p = one, read
		return true
	}
	one, read = *j, *p
	if l, ok := lookers[argv[0]]; ok {
		l.join(&read)
		if l.fits(&one, &read) {
			*j, *p = one, read
			return true
		}
	}
	return j.uses(p)
}

// isLooker reports whether the tables list arguments with which a program, or one of its verbs, only reads.
func isLooker(name string) bool {
	_, looks := lookers[name]
	_, searches := searchers[name]
	return looks || searches || slices.ContainsFunc(usesOf()[name], func(u use) bool {
		return len(u.verbs) == 0 && (len(u.operands) > 0 || len(u.letters) > 0)
	})
}

// fits reports whether the program permits the arguments, and records which files and folders it reads.
func (l looker) fits(j *Judgment, p *piece) bool {
	operands, ok := l.flags(p.argv[1:])
	if l.pattern && len(operands) == 1 && flagged(p.argv[1:], "r", "--recursive") {
		// GNU grep then searches the current folder, also after a pipe; other versions wait for keys.
		operands = append(operands, len(p.argv)-1)
		p.argv = append(slices.Clone(p.argv), ".")
	}
	argv, least := p.argv, l.least
	if p.fed && l.content && !l.files {
		least = 0
		if l.pattern {
			least = 1
		}
	}
	if !ok || len(operands) < least || l.most >= 0 && len(operands) > l.most || p.globsBeside(operands) {
		return false
	}
	for i, at := range operands {
		at++ // the index of the operand in argv, which begins with the program's name
		if l.pattern && i == 0 {
			delete(p.globs, at) // the pattern to search for is not the name of a file
			continue
		}
		if !l.operand(argv[at]) || !j.path(p, at, l.content) {
			return false
		}
	}
	j.Files = l.files
	if j.Walks = l.goesBelow(argv[1:]); j.Walks && len(j.Looks) == 0 {
		j.Looks = []string{"."}
	}
	return true
}

// join puts the value of a long flag that must have one into the flag's word: --lines 3 becomes --lines=3. The command
// runs in this form, which systems cannot read differently.
func (l looker) join(p *piece) {
	for i := 1; i+1 < len(p.argv) && p.argv[i] != "--"; i++ {
		name, long := strings.CutPrefix(p.argv[i], "--")
		if !long || !isAmong(l.long, name+"=") || isAmong(l.long, name) || p.globs[i] || p.globs[i+1] ||
			l.takes(p.argv[i-1]) {
			continue
		}
		p.argv = slices.Concat(p.argv[:i], []string{p.argv[i] + "=" + p.argv[i+1]}, p.argv[i+2:])
		globs := map[int]bool{}
		for at := range p.globs {
			if at > i {
				at--
			}
			globs[at] = true
		}
		p.globs = globs
	}
}

// takes reports whether the next word is the value of the last letter of a word.
func (l looker) takes(word string) bool {
	letters := l.valued + l.apart + l.texts
	if l.pattern {
		letters += "e"
	}
	return len(word) > 1 && word[0] == '-' && word[1] != '-' && strings.ContainsAny(letters, word[len(word)-1:])
}

// globsBeside reports whether a word other than the operands is a pattern for file names.
func (p *piece) globsBeside(operands []int) bool {
	for at := range p.globs {
		if !slices.Contains(operands, at-1) {
			return true
		}
	}
	return false
}

// path records a word that is a path, and reports whether it is allowed. A file whose content is read must not be a
// pattern, because each matching file would have to be opened first.
func (j *Judgment) path(p *piece, at int, content bool) bool {
	j.Looks = append(j.Looks, p.argv[at])
	if content {
		j.Reads, p.reads = append(j.Reads, p.argv[at]), append(p.reads, at)
	}
	return !content || !p.globs[at]
}

// goesBelow reports whether the program reads everything below a folder.
func (l looker) goesBelow(args []string) bool {
	return l.walks != "" && (l.walks == always || flagged(args, l.walks, "--recursive")) &&
		!(l.stays != "" && flagged(args, l.stays, "--one-file-system"))
}

// flagged reports whether an argument has a flag with one of the letters, or is the long flag name.
func flagged(args []string, letters, name string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		return a == name || len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.ContainsAny(a, letters)
	})
}

// stands reports whether a word of a form matches the given word.
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

// flags checks the flags, and returns the indexes of the operands.
func (l looker) flags(args []string) (operands []int, ok bool) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case l.pattern && a == "-e": // the pattern to search for, in place of the first operand
			if i++; i == len(args) {
				return nil, false
			}
			if !slices.Contains(args[:i-1], "-e") {
				operands = append([]int{i}, operands...)
			}
		case a == "--":
			for i++; i < len(args); i++ {
				operands = append(operands, i)
			}
		case strings.HasPrefix(a, "--"):
			if i, ok = l.longFlag(args, i); !ok {
				return nil, false
			}
		case l.counts && len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "0123456789") == "":
		case len(a) > 1 && a[0] == '-':
			if i, ok = l.shortFlags(args, i); !ok {
				return nil, false
			}
		default:
			operands = append(operands, i)
		}
	}
	return operands, true
}

// longFlag checks a flag that begins with two dashes, and returns the place of the flag or of the value after it.
func (l looker) longFlag(args []string, i int) (last int, ok bool) {
	name, value, has := strings.Cut(args[i][2:], "=")
	if !has && i+1 < len(args) && isAmong(l.next, name) && !strings.HasPrefix(args[i+1], "--") {
		i++
		value, has = args[i], true
	}
	if has {
		name += "="
	}
	return i, slices.Contains(strings.Fields(l.long), name) && (!has || l.value(strings.TrimLeft(value, "+-")))
}

// shortFlags checks one-letter flags after one dash, and returns the index of the word or of the value after it.
func (l looker) shortFlags(args []string, i int) (last int, ok bool) {
	a := args[i]
	value, next, ok := l.letters(a[1:])
	if next {
		if i++; i == len(args) {
			return i, false
		}
		value = args[i]
	}
	valued := next || value != ""
	return i, ok && (!valued || l.letterValue(a, value, next))
}

// letters checks one-letter flags after one dash. next reports whether the next word is the value of the last flag.
func (l looker) letters(flags string) (value string, next, ok bool) {
	for i, r := range flags {
		rest := flags[i+1:]
		switch {
		case strings.ContainsRune(l.short, r):
		case strings.ContainsRune(l.valued+l.apart+l.texts, r) && rest == "":
			return "", true, true
		case strings.ContainsRune(l.valued+l.joined+l.texts, r) && rest != "":
			return rest, false, true
		default:
			return "", false, false
		}
	}
	return "", false, true
}

// letterValue reports whether the last flag of a may have the value.
func (l looker) letterValue(a, value string, next bool) bool {
	flag := strings.TrimSuffix(a, value)
	if next {
		flag = a
	}
	switch {
	case strings.ContainsAny(flag[len(flag)-1:], l.texts):
		return value != ""
	case l.counts && !isCount(value):
		return false
	}
	return l.value(value)
}

// value reports whether a flag may have the value.
func (l looker) value(v string) bool { return l.values == nil || l.values(v) }

func isPath(s string) bool {
	return s != "" && !isRemote(s) && (strings.ContainsAny(s[:1], "*?[") || s == "~" || strings.HasPrefix(s, "~/") ||
		s[0] == '/' || s[0] == '.' || s[0] == '_' || isLetterOrDigit(s[0]))
}

// isRemote reports whether reading a path may make an automounter or a user's file system connect or run something, or
// may read a file that another process has open.
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

// isCount reports whether s is a number of lines or bytes, and therefore not the path of a private file.
var isCount = lazyregexp.New(`^[-+]?[0-9]+[A-Za-z]*$`).MatchString

// hasPercent reports whether s can be a format of stat, and is hardly a path.
func hasPercent(s string) bool { return strings.Contains(s, "%") }

// isDay reports whether s is a text that describes a time. A plain number does not count, because some systems would
// set the clock to it.
func isDay(s string) bool {
	return isText(s) && (s[0] == '@' || strings.ContainsFunc(s, unicode.IsLetter))
}

func isFormat(s string) bool { return strings.HasPrefix(s, "+") }

// isBSD reports whether s consists of letters of ps without a dash. The letter e, which shows the environment, is not
// allowed.
func isBSD(s string) bool { return s != "" && strings.Trim(s, "auxwfjlhmT") == "" }

// isColumns reports whether s is a list of columns or of selections for ps. None begins with a dash, because a ps that
// takes no value from the next word would read it as flags.
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
