package shell

import (
	"path"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// wrappers lists programs that run another program, which their arguments name. See also [isLoader].
var wrappers = words(`sudo doas su runuser pkexec run0 setpriv capsh sg gosu su-exec setuidgid chpst env xargs parallel
	watch time timeout nice ionice stdbuf unbuffer strace ltrace perf valgrind chroot unshare nsenter firejail bwrap proot
	fakeroot flock chrt taskset numactl setarch linux32 linux64 nohup setsid exec command builtin busybox toybox
	systemd-run systemd-inhibit systemd-cat ssh sshpass ssh-agent dbus-run-session cgexec prlimit runcon aa-exec choom
	uclampset logsave rlwrap chronic xvfb-run faketime eatmydata tini dumb-init find`)

// wrapperText lists the options of wrappers for which [wrapped] finds the wrapped program for certain, in the form of
// options.txt.
const wrapperText = `
sudo = AbEHknPSC:D:g:h:p:R:T:u:
doas = nsu:
xargs = 0a:d:E:I:L:n:oP:prs:tx null no-run-if-empty
time = pvf:o:
timeout = k:s:v foreground preserve-status
nice = n:
ionice = c:n:t
env = 0iu:C:
watch = bcdegn:tx
stdbuf = e:i:o:
nohup command chronic = -
setsid = cfw
`

var wrapperOptions = sync.OnceValue(func() map[string]program { return parsePrograms(wrapperText) })

// isDelay reports whether a word is a number or a duration, as in the operand of timeout.
var isDelay = lazyregexp.New(`^[0-9]+(?:\.[0-9]+)?[smhd]?$`).MatchString

// wrapped returns the index of the program that a wrapper runs, or 0 if its arguments do not show that for certain.
func wrapped(args []string) int {
	name := path.Base(args[0])
	p, ok := wrapperOptions()[name]
	if !ok {
		return 0
	}
	for i := 1; i < len(args); i++ {
		a := args[i]
		variable, _, assigns := strings.Cut(a, "=")
		switch {
		case len(a) > 1 && a[0] == '-':
			next, ok := p.separate(a)
			if !ok {
				return 0
			}
			if next {
				i++
			}
		case a == "" || a[0] == '-':
			return 0
		case assigns && (name == "env" || name == "sudo") && isVariable(variable):
		case name == "timeout" && !slices.ContainsFunc(args[1:i], isDelay) && isDelay(a):
		default:
			return i
		}
	}
	return 0
}

// separate reports whether the value of an option is the next word. ok is false if the option is unknown.
func (p program) separate(option string) (next, ok bool) {
	if strings.HasPrefix(option, "--") {
		return false, p.names[option[2:]]
	}
	for i, c := range []byte(option[1:]) {
		valued, known := p.letters[c]
		if !known || valued {
			return known && i == len(option)-2, known
		}
	}
	return false, true
}

// executed returns the places of the programs that find, fd and similar programs run for the files that they find.
func executed(args []string) (spans []span) {
	for i := 1; i < len(args); i++ {
		if !isAmong("-exec -execdir -ok -okdir -x -X --exec --exec-batch", args[i]) {
			continue
		}
		n := slices.IndexFunc(args[i+1:], func(w string) bool { return w == ";" || w == "+" })
		if n < 0 {
			n = len(args) - i - 1
		}
		if n > 0 && args[i+1] != "" { // a variable is warned about
			spans = append(spans, span{i + 1, i + 1 + n})
		}
		i += n
	}
	return spans
}

// isKnown reports whether the effects of a program's arguments are known, so that no other argument can be a program.
func isKnown(name string) bool {
	_, known := programs()[name]
	return known || talking()[name] || len(risksOf()[name]) > 0
}

// deepestWrapped is the maximum number of wrappers around a program, such as sudo and timeout.
const deepestWrapped = 8

// carried examines the arguments of a program. The arguments of a wrapper are another program and its arguments.
func (l *look) carried(args []string, words []*syntax.Word, depth int) {
	l.program(args, words)
	name := path.Base(args[0])
	switch {
	case depth == deepestWrapped:
		l.anyCarried(args, words)
		return
	case name == "find" || name == "fd" || name == "fdfind":
		for _, s := range executed(args) {
			l.carried(args[s.Start:s.End], words[s.Start:s.End], depth+1)
		}
		return
	case !wrappers[name] && !isLoader(name):
		if removes(name, args[1:]) {
			l.warn(place(words[0]), Destructive, "removes", "%s", texts["removes"])
		}
		return
	}
	i := wrapped(args)
	if i > 0 && isKnown(path.Base(args[i])) {
		l.carried(args[i:], words[i:], depth+1)
		return
	}
	if i > 0 && name == "watch" && strings.Contains(args[i], " ") && l.inner(args[i], Bash, place(words[i])) {
		return
	}
	if i > 0 && removes(path.Base(args[i]), args[i+1:]) {
		l.warn(place(words[i]), Destructive, "removes", "%s", texts["removes"])
	}
	l.anyCarried(args, words)
}

// anyCarried examines the arguments of a wrapper if any of them may be the program that it runs.
func (l *look) anyCarried(args []string, words []*syntax.Word) {
	for i := 1; i < min(len(args), maxWrapped); i++ {
		if args[i] != "" && args[i] != "." && args[i][0] != '-' {
			l.program(args[i:], words[i:])
		}
	}
	if len(args) > 1 && len(risksOf()[path.Base(args[1])]) > 0 {
		return // the verbs of that program were already examined
	}
	if i := slices.IndexFunc(args[:min(len(args), maxWrapped)], hasVerb); i > 0 && !l.gravely() {
		l.warn(place(words[i]), Destructive, "removes", "%s", texts["removes"])
	}
}

// gravely reports whether something destructive was already found.
func (l *look) gravely() bool {
	return slices.ContainsFunc(l.warnings, func(w Warning) bool { return w.Class == Destructive })
}

// maxWrapped is the number of words after sudo, env and similar programs that are examined as programs.
const maxWrapped = 32
