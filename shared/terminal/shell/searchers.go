package shell

import (
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// searchers are programs that only read with some of their arguments, in a form that the table of lookers cannot
// describe. Each function reports whether the program only reads, and records what it reads.
var searchers = map[string]func(j *Judgment, p *piece) bool{"find": finds, "journalctl": readsJournal,
	"systemctl": showsUnits, "sed": edits, "awk": matches, "gawk": matches, "mawk": matches,
	"jq": filters, "tar": listsArchive, "openssl": showsCertificate, "xargs": names, "rg": ripgreps,
	"test": compares, "man": findsManuals}

// findTests maps the tests and actions of find that only read to the check of their value, or to nil if they take none.
var findTests = func() map[string]func(string) bool {
	tests := map[string]func(string) bool{"-type": isName, "-user": isName, "-group": isName, "-perm": isPermission,
		"-newer": isPath, "-anewer": isPath, "-cnewer": isPath, "-samefile": isPath, "-xtype": isName,
		"-fstype": isName}
	for name := range words(`-name -iname -path -ipath -wholename -iwholename -regex -iregex -printf -newermt
		-newerat -newerct -regextype -lname -ilname`) {
		tests[name] = isText
	}
	for name := range words(`-maxdepth -mindepth -size -mtime -mmin -atime -amin -ctime -cmin -links -inum -uid
		-gid -used`) {
		tests[name] = isCount
	}
	for name := range words(`-empty -print -print0 -ls -xdev -mount -depth -not -a -and -o -or -readable -writable
		-executable -nouser -nogroup -prune -daystart -true -false -quit ! ( ) ,`) {
		tests[name] = nil
	}
	return tests
}()

// pathTests lists the tests of find whose value is a file that find reads.
var pathTests = words("-newer -anewer -cnewer -samefile")

// finds examines find, which looks for files by their names and attributes. It follows no link.
func finds(j *Judgment, p *piece) bool {
	args := p.argv[1:]
	first := slices.IndexFunc(args, func(a string) bool { return a == "" || strings.ContainsAny(a[:1], "-(),!") })
	if first < 0 {
		first = len(args)
	}
	j.Looks = slices.Clone(args[:first])
	if first == 0 {
		j.Looks = []string{"."}
	}
	j.Walks = true
	for i := first; i < len(args); i++ {
		delete(p.globs, i+1) // the pattern is for find itself, not for the shell
		fits, ok := findTests[args[i]]
		switch {
		case args[i] == "-exec":
			n := slices.IndexFunc(args[i:], func(a string) bool { return a == ";" || a == "+" })
			if n < 0 || !looksAtFound(args[i+1:i+n], noLinks(args[first:i])) {
				return false
			}
			j.Names = append(j.Names, args[i+1])
			i += n
		case !ok:
			return false
		case args[i] == "-xdev" || args[i] == "-mount":
			j.Walks = false
		case fits != nil:
			if i++; i == len(args) || !fits(args[i]) {
				return false
			}
			delete(p.globs, i+1)
			if pathTests[args[i-1]] {
				j.Looks = append(j.Looks, args[i])
			}
		}
	}
	return !slices.ContainsFunc(j.Looks, func(path string) bool { return !isPath(path) })
}

// findsManuals examines man, which may only search the descriptions of manuals.
func findsManuals(_ *Judgment, p *piece) bool {
	return len(p.argv) > 2 && isAmong("-k -f", p.argv[1]) &&
		!slices.ContainsFunc(p.argv[2:], func(a string) bool { return !isText(a) })
}

// foundLookers maps the programs that find may run for the files that it finds to the flags that they need. They print
// no content, and with one of these flags they follow no link. Programs without flags here never follow links.
var foundLookers = map[string]string{"ls": "ld", "stat": "", "du": "", "echo": "", "basename": "", "dirname": ""}

// noLinks reports whether the tests select only files or folders.
func noLinks(tests []string) bool {
	return slices.Contains(tests, "-type") && !slices.ContainsFunc(tests, func(a string) bool {
		return isAmong("l , ! -not -o -or", a)
	})
}

// looksAtFound reports whether a program only reads the files that find passes in place of {}. No such name begins with
// a dash. noLinks means that no file is a link.
func looksAtFound(argv []string, noLinks bool) bool {
	if len(argv) == 0 {
		return false
	}
	links, ok := foundLookers[argv[0]]
	flagged := func(letters string) bool {
		return slices.ContainsFunc(argv[1:], func(a string) bool {
			return len(a) > 1 && a[0] == '-' && (a[1] == '-' && letters == "LHD" || strings.ContainsAny(a[1:], letters))
		})
	}
	if !ok || links != "" && !noLinks && !flagged(links) || flagged("LHD") {
		return false
	}
	p, j := piece{argv: slices.Clone(argv)}, Judgment{}
	for i, a := range p.argv {
		if a == "{}" {
			p.argv[i] = "found"
		} else if strings.Contains(a, "{}") && argv[0] != "echo" {
			return false
		}
	}
	l, listed := lookers[argv[0]]
	return (listed && l.fits(&j, &p) || !listed && j.uses(&p)) && len(j.Reads)+len(j.Needs) == 0
}

// journal is the folder of the system's journal. It is read without approval only if the host's folders include it.
const journal = "/var/log/journal"

var journalLooker = looker{short: "abekqrx", valued: "FgnptuSUo", values: isText, most: 0,
	long: "all field= boot boot= catalog dmesg full list-boots disk-usage no-full no-hostname no-pager no-tail " +
		"pager-end quiet reverse utc grep= identifier= lines= output= priority= since= unit= until="}

// journalValues lists options whose value may be the next word.
var journalValues = words("--field --grep --identifier --lines --output --priority --since --unit --until")

// readsJournal examines journalctl.
func readsJournal(j *Judgment, p *piece) bool {
	args := p.argv[1:]
	j.Needs = []string{journal}
	var joined []string
	for i := 0; i < len(args); i++ {
		if journalValues[args[i]] && i+1 < len(args) {
			joined = append(joined, args[i]+"="+args[i+1])
			i++
			continue
		}
		joined = append(joined, args[i])
		if args[i] == "-b" && i+1 < len(args) && isCount(args[i+1]) { // selects an earlier boot
			i++
		}
	}
	operands, ok := journalLooker.flags(joined)
	return ok && !slices.ContainsFunc(operands, func(at int) bool { return !isJournalMatch(joined[at]) })
}

// isJournalMatch reports whether an operand of journalctl selects entries by a field.
var isJournalMatch = lazyregexp.New(`^[A-Z_][A-Z0-9_]*=.+$`).MatchString

var unitLooker = looker{short: "al", valued: "ntp", values: isColumns,
	long: "all failed full lines= no-legend no-pager plain quiet state= type= value property= reverse"}

// unitVerbs lists the verbs of systemctl that only read.
var unitVerbs = words(`status is-active is-enabled is-failed list-units list-unit-files list-timers list-sockets
	list-dependencies list-jobs list-paths list-automounts get-default show`)

// showsUnits examines systemctl. It prints the state of services with lines of the journal.
func showsUnits(j *Judgment, p *piece) bool {
	unitLooker.join(p)
	args := p.argv[1:]
	operands, ok := unitLooker.flags(args)
	if !ok || len(operands) == 0 || !unitVerbs[args[operands[0]]] {
		return false
	}
	for _, at := range operands[1:] {
		if !isName(args[at]) {
			return false
		}
	}
	if args[operands[0]] == "show" && !slices.ContainsFunc(args, func(a string) bool {
		return strings.HasPrefix(a, "-p") || strings.HasPrefix(a, "--property=")
	}) {
		return false // the properties include the environment variables of the unit
	}
	if args[operands[0]] == "status" {
		j.Needs = []string{journal}
	}
	return true
}

// isText reports whether s can be a value and not another option.
func isText(s string) bool { return s != "" && s[0] != '-' }

var isPermission = lazyregexp.New(`^[-/]?[0-7ugoarwxXst,=+-]+$`).MatchString
