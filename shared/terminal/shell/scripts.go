package shell

import (
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// script examines a program that runs a script in its own language, given as the first operand or with -e. The other
// operands are files whose content it prints.
func (j *Judgment) script(p *piece, letters string, valued string, harmless func(string) bool) bool {
	files, ok := scriptFiles(p.argv, letters, valued, harmless)
	if !ok {
		return false
	}
	for _, at := range files {
		if !isPath(p.argv[at]) || strings.Contains(p.argv[at], "=") || !j.path(p, at, true) {
			return false
		}
	}
	j.Files = len(files) > 0
	return len(files) > 0 || p.fed
}

// scriptFiles returns the indexes of the files. ok is true if there is a script, and all scripts and options are
// harmless.
func scriptFiles(argv []string, letters, valued string, harmless func(string) bool) (files []int, ok bool) {
	found, given := false, false // a script; a script as the first operand
	for i := 1; i < len(argv); i++ {
		a := argv[i]
		switch {
		case len(a) > 1 && a[0] == '-':
			if given && valued != "" && strings.Trim(a[1:], letters) != "" {
				return nil, false // with this option, or on other systems, the words around it are files
			}
			option, value, ok := scriptFlags(a[1:], letters, valued)
			if option != 0 && value == "" {
				if i++; i == len(argv) {
					return nil, false
				}
				value = argv[i]
			}
			if !ok || option != 0 && !scriptOption(option, value, harmless) {
				return nil, false
			}
			found = found || option == 'e'
		case !found:
			if found, given = true, true; !harmless(a) {
				return nil, false
			}
		default:
			files = append(files, i)
		}
	}
	return files, found
}

// scriptFlags examines one-letter options after a dash. option is the letter of the option with a value, or 0. If value
// is empty, the value is the next word.
func scriptFlags(flags, letters, valued string) (option byte, value string, ok bool) {
	last := len(flags) - 1
	switch {
	case strings.Trim(flags[:last], letters) == "" && strings.ContainsAny(flags[last:], valued):
		return flags[last], "", true
	case last > 0 && flags[0] != 'e' && strings.ContainsAny(flags[:1], valued):
		return flags[0], flags[1:], true
	}
	return 0, "", strings.Trim(flags, letters) == ""
}

// scriptOption reports whether an option of a scripting program may have the value: a script for -e, a separator for
// -F, a variable for -v.
func scriptOption(option byte, value string, harmless func(string) bool) bool {
	switch option {
	case 'e':
		return harmless(value)
	case 'F':
		return value != "" && len(value) <= 8
	case 'v':
		name, _, ok := strings.Cut(value, "=")
		return ok && isVariable(name) && !strings.HasPrefix(name, "ARG")
	}
	return false
}

var isVariable = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString

// matches examines awk.
func matches(j *Judgment, p *piece) bool { return j.script(p, "", "Fv", harmlessAwk) }

// harmlessAwk reports whether an awk program can run no command, write no file, and read no file that is not an
// operand. Each of these needs a certain name, a pipe, or a > after a print. The text must contain none of them, not
// even in quotes.
func harmlessAwk(program string) bool {
	if strings.ContainsAny(program, "@\n`") || strings.Contains(program, "\\\n") {
		return false
	}
	for _, name := range []string{"system", "getline", "ARG", "SYMTAB", "FUNCTAB", "PROCINFO", "ENVIRON", "extension",
		"close", "fflush", "include", "load"} {
		if strings.Contains(program, name) {
			return false
		}
	}
	if strings.Contains(strings.ReplaceAll(program, "||", ""), "|") {
		return false
	}
	printing := strings.Index(program, "print")
	return printing < 0 || !strings.Contains(program[printing:], ">")
}

// edits examines sed.
func edits(j *Judgment, p *piece) bool { return j.script(p, "nErsuz", "e", harmlessSed) }

// harmlessSed reports whether a script of sed only prints, deletes and replaces lines. It parses the part of the
// language that all implementations interpret alike, and returns false for every other script.
func harmlessSed(script string) bool {
	for script = strings.TrimLeft(script, " ;"); script != ""; script = strings.TrimLeft(script, " ;") {
		rest, ok := sedAddresses(script)
		if !ok || rest == "" {
			return false
		}
		command, rest := rest[0], rest[1:]
		switch {
		case command == '{':
			script = rest
			continue
		case command == 's' || command == 'y':
			if rest, ok = sedReplacement(rest, command == 's'); !ok {
				return false
			}
		case command == 'q' || command == 'Q':
			rest = strings.TrimLeft(rest, "0123456789 ")
		case strings.IndexByte("pPdDnNgGhHx=l}", command) < 0:
			return false
		}
		if script = strings.TrimLeft(rest, " "); script != "" && script[0] != ';' && script[0] != '}' {
			return false
		}
	}
	return true
}

var sedAddress = lazyregexp.New(`^(?:[0-9]+|\$|[0-9]+~[0-9]+|\+[0-9]+|/(?:[^/\\\n\[]|\\[^\ncdox]|\[\^?[^]/\\\n]+\])+/I?)`)

// sedAddresses returns the text after the addresses of a command.
func sedAddresses(script string) (rest string, ok bool) {
	if strings.IndexByte("0123456789$/", script[0]) >= 0 {
		for range 2 {
			at := firstMatch(sedAddress, script)
			if at == "" {
				return "", false
			}
			if script = strings.TrimLeft(script[len(at):], " "); !strings.HasPrefix(script, ",") {
				break
			}
			if script = strings.TrimLeft(script[1:], " "); script == "" {
				return "", false
			}
		}
		if strings.HasPrefix(script, ",") {
			return "", false
		}
	}
	return strings.TrimLeft(script, "! "), true
}

// sedReplacement returns the text after s/regexp/replacement/flags or y/characters/characters/.
func sedReplacement(script string, flags bool) (rest string, ok bool) {
	if script == "" || strings.IndexByte("/|,#:@%_+=~", script[0]) < 0 {
		return "", false
	}
	end := script[0]
	parts, bracket := 0, false
	i := 1
	for ; i < len(script) && parts < 2; i++ {
		switch c := script[i]; {
		case c == '\n':
			return "", false
		case c == '\\':
			if i++; !portableEscape(script[i:], bracket) {
				return "", false
			}
		case c == end && bracket: // implementations differ in whether this is the end
			return "", false
		case c == end:
			parts++
		case c == '[' && parts == 0 && flags:
			bracket = true
			i += len(firstMatch(bracketStart, script[i+1:]))
		case c == ']' && bracket:
			bracket = false
		}
	}
	if parts < 2 {
		return "", false
	}
	if rest = script[i:]; flags {
		rest = strings.TrimLeft(rest, "gpiI0123456789")
	}
	return rest, true
}

// portableEscape reports whether each implementation of sed reads the character after a backslash in the same way.
// Fewer characters qualify within a bracket.
func portableEscape(after string, bracket bool) bool {
	return after != "" && strings.IndexByte("\ncdox", after[0]) < 0 &&
		(!bracket || strings.IndexByte("tnswSW.", after[0]) >= 0)
}

// firstMatch returns the first match, or nothing.
func firstMatch(r *lazyregexp.Regexp, s string) string {
	return strings.Join(r.FindAllString(s, 1), "")
}

// bracketStart matches the positions in which a bracket does not close a list of characters.
var bracketStart = lazyregexp.New(`^\^?\]?`)

// filters examines jq.
func filters(j *Judgment, p *piece) bool { return j.script(p, "acCejMnrsS", "", harmlessJq) }

// harmlessJq reports whether a program of jq loads no module.
func harmlessJq(program string) bool {
	for _, name := range []string{"import", "include", "module"} {
		if strings.Contains(program, name) {
			return false
		}
	}
	return true
}

// listsArchive examines tar, which may only list the members of one archive.
func listsArchive(j *Judgment, p *piece) bool {
	if len(p.argv) != 3 {
		return false
	}
	letters := strings.TrimPrefix(p.argv[1], "-")
	if machine, _, remote := strings.Cut(p.argv[2], ":"); remote && !strings.Contains(machine, "/") {
		return false // an archive on another machine
	}
	return strings.Trim(letters, "tvzjJf") == "" && strings.Contains(letters, "t") &&
		strings.HasSuffix(letters, "f") && isPath(p.argv[2]) && j.path(p, 2, true)
}

// certificateOptions are the options of openssl x509 that print a part of a certificate.
const certificateOptions = `-noout -text -dates -startdate -enddate -subject -issuer -serial -fingerprint -purpose
	-pubkey -sha256`

// showsCertificate examines openssl, which may only print a certificate.
func showsCertificate(j *Judgment, p *piece) bool {
	if len(p.argv) < 4 || p.argv[1] != "x509" {
		return false
	}
	from := p.fed
	for i := 2; i < len(p.argv); i++ {
		switch a := p.argv[i]; {
		case a == "-in" && i+1 < len(p.argv) && isPath(p.argv[i+1]) && j.path(p, i+1, true):
			i, from = i+1, true
		case !isAmong(certificateOptions, a):
			return false
		}
	}
	return from
}

// textPrograms are programs that only print their arguments.
const textPrograms = "echo basename dirname"

// names examines xargs, which may only run a program that prints its arguments.
func names(j *Judgment, p *piece) bool {
	args := p.argv[1:]
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch a := args[0]; {
		case a == "-0" || a == "-r" || a == "-x" || xargsCount(a):
			args = args[1:]
		case (a == "-n" || a == "-L" || a == "-P") && len(args) > 1 && isCount(args[1]), a == "-I" && len(args) > 1:
			args = args[2:]
		default:
			return false
		}
	}
	j.Names = append(j.Names, args[:min(1, len(args))]...)
	return p.fed && (len(args) == 0 || isAmong(textPrograms, args[0]))
}

var xargsCount = lazyregexp.New(`^-(?:[nLP][0-9]+|I.+)$`).MatchString
