package shell

import (
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// verbs lists words that mean deleting or ending something in programs for services, databases and packages.
// [destroying] has the stems of others.
var verbs = words(`del rm rmi rb rmtree rmdir drop wipe erase prune flush flushall flushdb truncate nuke evict
	revoke teardown expunge reset fresh unmerge undeploy undefine unpublish yank zap obliterate forget kill shutdown
	reboot poweroff deprovision rollback downgrade deletion unsubscribe deallocate userdel delsnapshot delfs deldev
	delpvid delnode delprinc delpol delkey delhost delpeer cleanup unset unlink decommission hdel xdel getdel srem lrem
	lpop rpop spop ltrim xtrim`)

// tidying lists words that mean the same as verbs, but only at the beginning or the end of a word: not within a text,
// and not as the name of a program.
var tidying = words(`clean clear gc disconnect unban unbanip leave logout signout unmount umount eject purify
	deintegrate uninit revert`)

// destroying lists stems of verbs: delete_user, autoremove and lvremove destroy something; --removed, uninstaller and
// undelete do not.
var destroying = strings.Fields("delete remove destroy purge uninstall terminate deregister unregister")

// destroys reports whether a word, in lower-case letters, is a verb that deletes or ends something.
func destroys(word string) bool {
	return verbs[word] || word != "undelete" && slices.ContainsFunc(destroying, func(stem string) bool {
		rest, begins := strings.CutPrefix(word, stem)
		return begins && !isAmong("d r ed er", rest) || strings.HasSuffix(word, stem)
	})
}

// talking lists programs whose arguments are only texts to search for, or names of files, manuals, tests or terminal
// capabilities.
var talking = sync.OnceValue(func() map[string]bool {
	return words(`reset tput tldr cheat man apropos whatis info help rg ag ack ugrep ug sift bat batcat
		yq gron fd fdfind zgrep bzgrep xzgrep eza exa lsd delta tokei cloc scc pytest jest vitest mocha rspec
		phpunit ctest tox duperemove sed`)
})

// reading lists verbs that are followed only by a name to search for.
const reading = "search find list get describe show view explain help can-i plan"

// hasVerb reports whether a word names a verb that deletes or ends something: terminate-instances, db:drop,
// dropDatabase, --purge. A path or a value names none.
func hasVerb(word string) bool {
	name, value, _ := strings.Cut(word, "=")
	if strings.HasPrefix(word, "-") {
		return name != "--rm" && !strings.HasPrefix(name, "--no-") && wordNamesVerb(name)
	}
	if strings.Contains(word, " ") { // a script or a statement
		return verb(word)
	}
	return value == "" && !strings.Contains(word, "/") && !dataFile(word) && wordNamesVerb(word)
}

// wordNamesVerb reports whether a word of a command names a verb, or begins or ends with a word of tidying.
func wordNamesVerb(word string) bool {
	parts := partsOf(word)
	return verb(word) || len(parts) > 0 && (tidying[parts[0]] || tidying[parts[len(parts)-1]])
}

// dataFile reports whether a word is the name of a file with data, and not of a script.
var dataFile = lazyregexp.New(`\.(?:txt|log|json|csv|tsv|ya?ml|toml|xml|html?|md|pdf|conf|cfg|ini|tar|t?gz|bz2|xz|zip|` +
	`zst|iso|img|qcow2|deb|rpm|pem|key|crt|cer|png|jpe?g|svg|rb)$`).MatchString

// verb reports whether one of the words in a name or a text is a verb.
func verb(text string) bool { return slices.ContainsFunc(partsOf(text), destroys) }

// partsOf returns the words in a name or a text, in lower-case letters.
func partsOf(text string) []string {
	var b strings.Builder
	var last rune
	for _, r := range text {
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
		last = r
	}
	return strings.FieldsFunc(b.String(), func(r rune) bool { return !unicode.IsLetter(r) })
}

// namesVerb reports whether one of the words is a verb that deletes or ends something, and no word before it is a verb
// that reads.
func namesVerb(args []string) bool {
	i := slices.IndexFunc(args, hasVerb)
	return i >= 0 && !slices.ContainsFunc(args[:i], func(a string) bool { return isAmong(reading, a) })
}

// naming lists, for programs that install or fetch things, the verbs that are followed only by names: pip install purge
// removes nothing.
const naming = `
apt apt-get aptitude = install reinstall download show search list policy depends rdepends source
yum dnf zypper = install reinstall info search list provides se
apk brew port snap flatpak = add install info search list uses deps desc home find
pip pip3 = install show download search
npm bun pnpm yarn = install i add view info show search why test
gem bundle = install info search list
cargo = add install search info test bench doc
go = get install list doc test vet
conda mamba micromamba poetry = add install search list show
docker podman nerdctl = build pull push logs inspect tag images top port stats search
kubectl oc = logs get describe explain top
pacman yay paru = -S -Ss -Si -Q -Qi -Qs
`

var namingVerbs = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(naming) {
		names, verbs, _ := strings.Cut(strings.TrimSpace(line), " = ")
		for name := range strings.FieldsSeq(names) {
			all[name] = strings.Fields(verbs)
		}
	}
	return all
})

// withoutNames returns the arguments of a program without those that only name what it installs or fetches. A verb
// counts only as the first argument, or after options that surely have no value.
func withoutNames(name string, args []string) []string {
	at := slices.IndexFunc(args, func(a string) bool { return !isAmong("-y -q -qq --yes --quiet --assume-yes", a) })
	if at < 0 || !slices.Contains(namingVerbs()[name], args[at]) {
		return args
	}
	kept := slices.Clone(args[:at+1])
	for _, a := range args[at+1:] {
		if strings.HasPrefix(a, "-") {
			kept = append(kept, a)
		}
	}
	return kept
}

// firstWords is the number of words in an unknown program's command that are searched for a verb.
const firstWords = 6

// removes reports whether the name or one of the first words of a program means deletion. It examines unknown programs,
// and those whose known uses all destroy something.
func removes(name string, args []string) bool {
	_, known := programs()[name]
	if known || builtins[name] || talking()[name] || onlyLooks(name, args) ||
		slices.ContainsFunc(risksOf()[name], func(r risk) bool { return len(r.with) == 0 || r.class != Destructive }) {
		return false
	}
	if i := firstOption(name, args); i >= 0 && args[i] == "--dry-run" {
		return false
	}
	args = withoutNames(name, args)
	return namesVerb(args[:min(len(args), firstWords)]) || verb(name)
}

// harmlessText lists options with which destructive programs only read or plan, in the form of options.txt.
const harmlessText = `
fdisk gdisk = lxo: list
sfdisk = lJdFVs list list-free dump json verify show-size
sgdisk = pivL print info verify list-types
parted = l list
hdparm = IigtTC
mdadm = DEQs detail examine query scan
tune2fs = l
resize2fs = P
fsck e2fsck = nN
chage = li list iso8601
chsh = l list-shells
passwd = Sa status all
kill = lL list table -0
killall = l list
visudo = cq check
setfacl = t test
shutdown = c show
`

// dryRuns lists options that make programs only report their actions. They count only as the first option, because a
// later one could be the value of another option.
const dryRuns = `
rsync = -n* -an -avn -avzn -aun -rn -rvn --dry-run
wipefs = -n --no-act
setfacl = --test
kubectl oc = --dry-run --dry-run=client --dry-run=server
helm argocd npm nix-collect-garbage conda poetry = --dry-run
aws = --dryrun --dry-run
tlmgr sfdk = --dry-run
pkg_delete = -n
bun = --dry-run
pg_archivecleanup virt-sysprep = -n --dry-run --list-operations
emerge = -p --pretend
brew make = -n
rdfind = -dryrun
bleachbit = -l -p --list --preview
git clean = -n* -dn -xdn -fdn -fdxn --dry-run
git push = -n* --dry-run
git rm = -n* --dry-run
git prune = -n* --dry-run
git rebase = --abort
git restore = --staged -S
git remote = -n* --dry-run
apt apt-get aptitude = -s* --simulate --just-print --dry-run --no-act --recon
dnf yum = --assumeno
zypper = -D --dry-run
pacman = -p --print -Rp
ufw = --dry-run
dpkg = --dry-run --no-act --simulate
`

var (
	lookingOptions = sync.OnceValue(func() map[string]program { return parsePrograms(harmlessText) })
	dryOptions     = sync.OnceValue(func() map[string][]string {
		all := map[string][]string{}
		for line := range strings.Lines(dryRuns) {
			names, options, _ := strings.Cut(strings.TrimSpace(line), " = ")
			if names, ok := strings.CutPrefix(names, "git "); ok {
				all["git "+names] = strings.Fields(options)
				continue
			}
			for name := range strings.FieldsSeq(names) {
				all[name] = strings.Fields(options)
			}
		}
		return all
	})
)

// asksForHelp reports whether a program only prints its help or its version. It checks the last argument, if there is
// no -- before it.
func asksForHelp(name string, args []string) bool {
	if len(args) == 0 || slices.Contains(args, "--") {
		return false
	}
	switch args[len(args)-1] {
	case "--help":
		return true
	case "--version", "-V":
		return len(args) == 1
	case "-h":
		return !isAmong("shutdown halt poweroff reboot rm chown chgrp chmod", name)
	case "help":
		return name == "aws"
	}
	return name == "git" && args[0] == "help"
}

// firstOption returns the index of the first option, or -1. For rsync and git clean, it skips letters without a value.
func firstOption(name string, args []string) int {
	letters := ""
	if name == "rsync" || name == "git" && len(args) > 0 && args[0] == "clean" {
		letters = "adfqrvxzX"
	}
	first := -1
	for i, a := range args {
		if len(a) < 2 || a[0] != '-' {
			continue
		}
		if first = i; strings.Trim(a[1:], letters) != "" {
			break
		}
	}
	return first
}

// onlyLooks reports whether a destructive program has only options with which it reads, or one with which it only
// reports its actions.
func onlyLooks(name string, args []string) bool {
	if asksForHelp(name, args) {
		return true
	}
	if isAmong("kubectl oc", name) && viewsApplied(args) || name == "dd" && !slices.ContainsFunc(args, writesTo) {
		return true
	}
	i := firstOption(name, args)
	if i < 0 {
		return false
	}
	p, ok := lookingOptions()[name]
	signal := func(a string) bool { return !p.names[a] && len(a) > 1 && strings.Trim(a, "-0123456789") == "" }
	if ok && p.unknown(args) < 0 && !slices.ContainsFunc(args, signal) {
		return true
	}
	key := name
	if name == "git" && i > 0 {
		key += " " + args[0]
	}
	if key == "git restore" && (slices.Contains(args, "--worktree") || slices.Contains(args, "-W")) {
		return false
	}
	return slices.ContainsFunc(dryOptions()[key], func(o string) bool {
		start, any := strings.CutSuffix(o, "*")
		return args[i] == o || any && strings.HasPrefix(args[i], start) && !strings.HasPrefix(args[i], "--")
	})
}

// viewsApplied reports whether kubectl only prints the configuration that was applied last.
func viewsApplied(args []string) bool {
	for len(args) > 1 && isAmong("-n --namespace --context", args[0]) {
		args = args[2:]
	}
	return begins(args, []string{"apply", "view-last-applied"})
}

// writesTo reports whether an operand of dd may name a file to write. An empty operand, which only the shell could
// determine, may.
func writesTo(a string) bool { return a == "" || strings.HasPrefix(a, "of=") && a != "of=/dev/null" }
