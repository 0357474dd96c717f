package shell

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

//go:embed uses.txt
var usesText string

// A use is a line of uses.txt: a program and its verbs, with the arguments with which it only reads.
type use struct {
	verbs    []string
	letters  map[byte]byte   // ':' if the letter has a value, '?' if a value may follow in the same word, else ' '
	long     map[string]byte // as for letters
	operands []operand
	notes    map[string]string
}

// An operand is a kind of operand, and how many are permitted.
type operand struct {
	kind string
	many byte // 0 for exactly one; '?', '*' or '+'
}

// usesOf maps the names of programs to their uses.
var usesOf = sync.OnceValue(func() map[string][]use {
	of := map[string][]use{}
	for line := range strings.Lines(strings.ReplaceAll(usesText, "\n  ", " ")) {
		cells := strings.Split(strings.TrimSpace(line)+" ", "|")
		if strings.HasPrefix(line, "#") || len(cells) != 4 {
			continue
		}
		u := use{letters: map[byte]byte{}, long: map[string]byte{}, notes: map[string]string{}}
		options := strings.Fields(cells[1])
		for i, c := range []byte(options[0]) {
			switch c {
			case '-': // no letters
			case ':', '?':
				u.letters[options[0][i-1]] = c
			default:
				u.letters[c] = ' '
			}
		}
		for _, name := range options[1:] {
			name, valued := strings.CutSuffix(name, "=")
			_, alone := u.long[name]
			switch {
			case valued && alone:
				u.long[name] = '?'
			case valued:
				u.long[name] = ':'
			default:
				u.long[name] = ' '
			}
		}
		for _, o := range strings.Fields(cells[2]) {
			kind := strings.TrimRight(o, "?*+")
			u.operands = append(u.operands, operand{kind, strings.TrimPrefix(o+"\x00", kind)[0]})
		}
		for _, note := range strings.Fields(cells[3]) {
			name, value, _ := strings.Cut(note, "=")
			u.notes[name] = value
		}
		heads := strings.Fields(cells[0])
		if isAmong(verbed, heads[0]) {
			u.verbs = heads[1:]
			heads = heads[:1]
		}
		for _, name := range heads {
			of[name] = append(of[name], u)
		}
	}
	return of
})

// verbed lists the programs whose first arguments are verbs.
const verbed = `apk apt apt-cache apt-mark bridge brctl busctl docker getent hostnamectl ip iw localectl loginctl
	networkctl nmcli openssl pip pip3 resolvectl rfkill snap systemd-analyze tc timedatectl ufw`

// isAmong reports whether a word is in a list of words.
func isAmong(list, word string) bool { return slices.Contains(strings.Fields(list), word) }

// uses reports whether the program only reads according to one of its uses, and records what it reads.
func (j *Judgment) uses(p *piece) bool {
	args := p.argv[1:]
	if p.argv[0] == "ip" {
		args = ipWords(args)
	}
	for _, u := range usesOf()[p.argv[0]] {
		one, read := *j, *p
		if begins(args, u.verbs) && u.fits(&one, &read, len(p.argv)-len(args)+len(u.verbs)) {
			*j, *p = one, read
			return true
		}
	}
	return false
}

// fits reports whether the use permits the arguments from index first on.
func (u *use) fits(j *Judgment, p *piece, first int) bool {
	given, operands, ok := u.options(p, first)
	if must, asked := u.notes["must"]; !ok || asked && !anyOf(given, strings.Split(must, ",")) {
		return false
	}
	if begin, asked := u.notes["first"]; asked && (first == len(p.argv) || !beginsWith(p.argv[first], begin)) {
		return false
	}
	if needs := u.notes["needs"]; needs != "" {
		j.Needs = append(j.Needs, needs)
	}
	_, j.Walks = u.notes["walks"]
	return u.takes(j, p, operands)
}

// options returns the options, and the indexes of the operands.
func (u *use) options(p *piece, first int) (given []string, operands []int, ok bool) {
	_, stops := u.notes["stops"]
	for i := first; i < len(p.argv); i++ {
		a := p.argv[i]
		switch {
		case stops && len(operands) > 0:
			operands = append(operands, i)
		case a == "--":
			for i++; i < len(p.argv); i++ {
				operands = append(operands, i)
			}
		case len(a) < 2 || a[0] != '-':
			operands = append(operands, i)
		default:
			names, next, ok := u.option(a)
			if given = append(given, names...); !ok || p.globs[i] {
				return nil, nil, false
			}
			if !next {
				continue
			}
			// Some systems take every word after an operand for a file.
			if i++; i == len(p.argv) || p.globs[i] || !u.value(p.argv[i]) ||
				len(operands) > 0 && u.prints() && !isCount(p.argv[i]) {
				return nil, nil, false
			}
		}
	}
	return given, operands, true
}

func anyOf(given, wanted []string) bool {
	return slices.ContainsFunc(wanted, func(w string) bool { return slices.Contains(given, w) })
}

// beginsWith reports whether a word begins with one of the texts, which are separated by commas.
func beginsWith(word, texts string) bool {
	return slices.ContainsFunc(strings.Split(texts, ","), func(s string) bool { return strings.HasPrefix(word, s) })
}

// option returns the options of an argument. next reports whether the next argument is the value of the last option.
func (u *use) option(a string) (options []string, next, ok bool) {
	if strings.HasPrefix(a, "--") {
		name, value, has := strings.Cut(a[2:], "=")
		kind, known := u.long[name]
		if !known || has && (kind == ' ' || !u.value(value)) {
			return nil, false, false
		}
		return []string{"--" + name}, kind == ':' && !has, true
	}
	if _, counts := u.notes["counts"]; counts && strings.Trim(a[1:], "0123456789") == "" {
		return nil, false, true
	}
	for i, c := range []byte(a[1:]) {
		rest := a[i+2:]
		options = append(options, "-"+string(c))
		switch u.letters[c] {
		case ' ':
		case ':':
			return options, rest == "", rest == "" || u.value(rest)
		case '?':
			return options, false, rest == "" || isPort(rest)
		default:
			return nil, false, false
		}
	}
	return options, false, true
}

// value reports whether an option may have the value. The value must not be another option, or a word that another
// system reads as a file whose content is printed.
func (u *use) value(v string) bool {
	if _, counts := u.notes["counts"]; counts && isCount(v) {
		return true
	}
	return v == "-" || v != "" && v[0] != '-' && (len(v) == 1 || !strings.Contains(v, "/") || !u.prints())
}

// prints reports whether a use prints the content of files.
func (u *use) prints() bool {
	return slices.ContainsFunc(u.operands, func(o operand) bool { return o.kind == "FILE" })
}

// takes reports whether the use permits the operands, and records those that are paths.
func (u *use) takes(j *Judgment, p *piece, operands []int) bool {
	_, fed := u.notes["fed"]
	if fed && (len(operands) == 0 || !u.prints()) && !p.fed {
		return false // it would wait for keys
	}
	if len(operands) == 0 && fed && u.prints() {
		return true
	}
	if _, plain := u.notes["plain"]; plain && strings.ContainsAny(strings.Join(p.argv, ""), "$`") {
		return false
	}
	for _, o := range u.operands {
		n := o.leading(p, operands, fed && p.fed)
		if n == 0 && (o.many == 0 || o.many == '+') {
			return false
		}
		for _, at := range operands[:n] {
			if !j.operand(p, o, at) {
				return false
			}
		}
		operands = operands[n:]
	}
	if j.Walks && len(j.Looks) == 0 {
		j.Looks = []string{"."}
	}
	return len(operands) == 0
}

// leading returns how many of the first operands are of this kind. The operand - is the input of a command that is fed.
func (o operand) leading(p *piece, operands []int, fed bool) (n int) {
	for n < len(operands) && (n == 0 || o.many == '*' || o.many == '+') &&
		(o.is(p.argv[operands[n]]) || fed && p.argv[operands[n]] == "-") {
		n++
	}
	return n
}

// operand reports whether the word may be an operand of this kind, and records a path.
func (j *Judgment) operand(p *piece, o operand, at int) bool {
	printed := o.kind == "FILE" && p.argv[at] != "-"
	if printed || o.kind == "PATH" {
		return j.path(p, at, printed)
	}
	return !p.globs[at]
}

// is reports whether a word can be an operand of this kind.
func (o operand) is(word string) bool {
	switch o.kind {
	case "FILE", "PATH":
		return isPath(word)
	case "NAME":
		return isName(word)
	case "TEXT":
		return isText(word)
	case "WORD":
		return true
	case "COUNT":
		return isCount(word)
	case "NUMBER":
		return isNumeral(word)
	case "DEVICE":
		return isName(word) && !isCount(word)
	case "PORT":
		return isPort(word)
	case "SOCKET":
		return !slices.ContainsFunc(strings.Fields(word), func(w string) bool { return !isSocket(w) })
	}
	return false
}

// isNumeral reports whether s is a decimal number without a sign, which could also be an option.
var isNumeral = lazyregexp.New(`^[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?$`).MatchString

// isPort reports whether s is a selection of lsof's by protocol and port.
var isPort = lazyregexp.New(`^(?:[46]?(?i:tcp|udp)?(?::[0-9a-z,-]+)?)$`).MatchString

// isSocket reports whether s is a part of a filter of ss: a word of its language, an address in digits, or a port. It
// returns false for a host name, because ss would look it up.
var isSocket = lazyregexp.New(`^(?:state|exclude|all|connected|synchronized|bucket|big|established|syn-(?:sent|recv)|` +
	`fin-wait-[12]|time-wait|closed?|close-wait|last-ack|listen(?:ing)?|closing|new|src|dst|sport|dport|and|or|not|` +
	`eq|ne|neq|[lg][te]|[!=<>()&|]+|:[a-z0-9*-]+|[0-9.*]+(?:/[0-9]+)?(?::[a-z0-9*-]+)?|` +
	`\[(?:[0-9a-f]*:){2,}[0-9a-f]*](?:/[0-9]+)?(?::[a-z0-9*-]+)?)$`).MatchString
