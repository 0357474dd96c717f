package shell

import (
	"slices"
	"strings"
	"sync"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// ripgrepText lists the options with which ripgrep only searches, in the form of options.txt. It leaves out those that
// run a program (--pre, --hostname-bin, -z), follow links (-L), or read a file that is not searched (-f,
// --ignore-file). Without a home directory and its variable, ripgrep reads no configuration file.
const ripgrepText = `
plain = 0abcFHiIlnNopqsSuUvwx binary byte-offset case-sensitive column count count-matches crlf files
  files-with-matches files-without-match fixed-strings glob-case-insensitive heading hidden ignore-case invert-match
  json line-number line-regexp multiline multiline-dotall no-config no-filename no-heading no-hidden no-ignore
  no-ignore-dot no-ignore-exclude no-ignore-global no-ignore-messages no-ignore-parent no-ignore-vcs no-line-number
  no-messages no-unicode null one-file-system only-matching passthru pretty quiet smart-case stats text trim type-list
  unrestricted vimgrep with-filename word-regexp
valued = A:B:C:d:E:e:g:m:M:r:t:T: after-context before-context color colors context context-separator encoding glob
  iglob max-columns max-count max-depth max-filesize maxdepth regexp replace sort sortr type type-not
`

var ripgrepOptions = sync.OnceValue(func() map[string]program { return parsePrograms(ripgrepText) })

// ripgreps examines ripgrep. Below a folder it opens files by their paths, so no other user may be able to replace a
// file with a link.
func ripgreps(j *Judgment, p *piece) bool {
	operands, given, ok := ripgrepWords(p.argv)
	if !ok {
		return false
	}
	if !given["-e"] && !given["--regexp"] && !given["--files"] && !given["--type-list"] {
		if len(operands) == 0 {
			return false
		}
		operands = operands[1:] // the text to search for
	}
	for _, at := range operands {
		if p.argv[at] == "-" && p.fed {
			continue
		}
		if !isPath(p.argv[at]) || !j.path(p, at, true) {
			return false
		}
	}
	if len(operands) == 0 && !given["--type-list"] && (!p.fed || given["--files"]) {
		p.argv = append(slices.Clone(p.argv), ".")
		j.path(p, len(p.argv)-1, true)
	}
	j.Private = len(p.reads) > 0
	return true
}

// ripgrepWords returns the places of ripgrep's operands and its options.
func ripgrepWords(argv []string) (operands []int, given map[string]bool, ok bool) {
	plain, valued := ripgrepOptions()["plain"], ripgrepOptions()["valued"]
	given = map[string]bool{}
	for i := 1; i < len(argv); i++ {
		a := argv[i]
		name, value, has := strings.Cut(a, "=")
		next := false
		switch {
		case a == "--":
			for i++; i < len(argv); i++ {
				operands = append(operands, i)
			}
			continue
		case len(a) < 2 || a[0] != '-':
			operands = append(operands, i)
			continue
		case strings.HasPrefix(a, "--"):
			if name = name[2:]; !has && plain.names[name] {
				given["--"+name] = true
				continue
			}
			next = !has
			ok = valued.names[name] && (!has || value != "")
			given["--"+name] = true
		default:
			next, ok = ripgrepLetters(a[1:], plain, valued, given)
		}
		if next {
			i++
		}
		if !ok || i == len(argv) || next && argv[i] == "" {
			return nil, nil, false
		}
	}
	return operands, given, true
}

// ripgrepLetters checks one-letter options after one dash. next reports whether the next word is the value of the last
// option.
func ripgrepLetters(letters string, plain, valued program, given map[string]bool) (next, ok bool) {
	for i, c := range []byte(letters) {
		_, alone := plain.letters[c]
		_, takes := valued.letters[c]
		given["-"+string(c)] = true
		switch {
		case takes:
			return i == len(letters)-1, true
		case !alone:
			return false, false
		}
	}
	return false, true
}

// fileTests are the tests of one file. The other tests of one word are -n and -z.
const fileTests = "-b -c -d -e -f -g -h -k -L -p -r -s -S -u -w -x -O -G -N"

var isNumber = lazyregexp.New(`^-?[0-9]+$`).MatchString

// compares examines the program test. Tests of a variable are not allowed, and numbers must be literal, because some
// shells evaluate both as expressions.
func compares(j *Judgment, p *piece) bool {
	first := 1
	for first < len(p.argv)-1 && p.argv[first] == "!" {
		first++
	}
	file := func(at int) bool { return isPath(p.argv[at]) && j.path(p, at, false) }
	switch args := p.argv[first:]; len(args) {
	case 2:
		return isAmong("-n -z", args[0]) || isAmong(fileTests, args[0]) && file(first+1)
	case 3:
		switch args[1] {
		case "=", "==", "!=":
			return true
		case "-eq", "-ne", "-lt", "-le", "-gt", "-ge":
			return isNumber(args[0]) && isNumber(args[2])
		case "-nt", "-ot", "-ef":
			return file(first) && file(first+2)
		}
	}
	return false
}
