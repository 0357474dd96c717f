package shell

import (
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// searchers are programs that only look with some of their words, and whose words are of another form than the table
// of lookers has. Each reports whether it only looks, and notes at what.
var searchers = map[string]func(j *Judgment, args []string) bool{"find": finds, "journalctl": readsJournal,
	"systemctl": showsUnits}

// findTests are the tests and actions of find that only look, with what their values must be; nil: they have none.
var findTests = func() map[string]func(string) bool {
	tests := map[string]func(string) bool{"-type": isName, "-user": isName, "-group": isName, "-perm": isPermission,
		"-newer": isPath}
	for name := range words("-name -iname -path -ipath -wholename -iwholename -regex -iregex") {
		tests[name] = isText
	}
	for name := range words(`-maxdepth -mindepth -size -mtime -mmin -atime -amin -ctime -cmin -links -inum -uid
		-gid`) {
		tests[name] = isCount
	}
	for name := range words(`-empty -print -print0 -ls -xdev -mount -depth -not -a -and -o -or -readable -writable
		-executable -nouser -nogroup -prune -daystart -true -false ( )`) {
		tests[name] = nil
	}
	return tests
}()

// finds looks for files by their names and attributes. It follows no link.
func finds(j *Judgment, args []string) bool {
	first := slices.IndexFunc(args, func(a string) bool { return a == "" || strings.ContainsAny(a[:1], "-(),") })
	if first < 0 {
		first = len(args)
	}
	j.Looks = slices.Clone(args[:first])
	if first == 0 {
		j.Looks = []string{"."}
	}
	j.Walks = true
	for i := first; i < len(args); i++ {
		fits, ok := findTests[args[i]]
		switch {
		case !ok:
			return false
		case args[i] == "-xdev" || args[i] == "-mount":
			j.Walks = false
		case fits != nil:
			if i++; i == len(args) || !fits(args[i]) {
				return false
			}
			if args[i-1] == "-newer" {
				j.Looks = append(j.Looks, args[i])
			}
		}
	}
	return !slices.ContainsFunc(j.Looks, func(path string) bool { return !isPath(path) })
}

// journal is the folder of the system's journal. It is read unasked only if the host's folders include it.
const journal = "/var/log/journal"

var journalLooker = looker{short: "abekqrx", valued: "nptuSUo", values: isText, most: 0,
	long: "all boot catalog dmesg full list-boots disk-usage no-full no-hostname no-pager no-tail pager-end quiet " +
		"reverse utc identifier= lines= output= priority= since= unit= until="}

// journalValues are options whose value may be the next word.
var journalValues = words("--identifier --lines --output --priority --since --unit --until")

// readsJournal prints the journal.
func readsJournal(j *Judgment, args []string) bool {
	j.Needs = []string{journal}
	var joined []string
	for i := 0; i < len(args); i++ {
		if journalValues[args[i]] && i+1 < len(args) {
			joined = append(joined, args[i]+"="+args[i+1])
			i++
			continue
		}
		joined = append(joined, args[i])
	}
	operands, ok := journalLooker.flags(joined)
	return ok && len(operands) == 0
}

var unitLooker = looker{short: "al", valued: "nt", values: isName,
	long: "all failed full lines= no-legend no-pager plain quiet state= type="}

// unitVerbs are those of systemctl that only look.
var unitVerbs = words("status is-active is-enabled is-failed list-units list-unit-files list-timers list-sockets")

// showsUnits shows services. With their state come lines of the journal.
func showsUnits(j *Judgment, args []string) bool {
	operands, ok := unitLooker.flags(args)
	if !ok || len(operands) == 0 || !unitVerbs[args[operands[0]]] {
		return false
	}
	for _, at := range operands[1:] {
		if !isName(args[at]) {
			return false
		}
	}
	if args[operands[0]] == "status" {
		j.Needs = []string{journal}
	}
	return true
}

// isText reports whether s can be a value that is no other option.
func isText(s string) bool { return s != "" && s[0] != '-' }

var isPermission = lazyregexp.New(`^[-/]?[0-7ugoarwxXst,=+-]+$`).MatchString
