package shell

import (
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// A Repository is the part of a repository that a git command reads. The command reads names, states and messages,
// changes nothing, and prints no file. The repository's configuration can make git run other programs. Such a command
// is therefore opaque, and may run without approval only if the host has checked that configuration.
type Repository struct {
	Dir  string // where git looks for the repository: the value of -C, or "."
	Tree bool   // git also compares the files of the working tree

	// Prints is set if git prints content of the repository's files. Such a command may run without approval only if
	// the repository is in a folder that may be read.
	Prints bool
}

// repositoryLookers holds the git commands that only read, with their permitted options. No option here makes git print
// or write a file, verify a signature (which runs gpg), or run another program.
var repositoryLookers = map[string]looker{
	"status": {short: "sbz", joined: "u", values: isName, operand: isInRepository, most: anyNumber,
		long: "short branch porcelain porcelain= long show-stash untracked-files untracked-files= ignored ignored= " +
			"ahead-behind no-ahead-behind renames no-renames find-renames find-renames="},
	"log": {short: "iEFgszpu", valued: "nU", texts: "SG", counts: true, values: isPretty, operand: isInRepository,
		most: anyNumber, next: historyValues,
		long: historyFlags + namesFlags + patchFlags + "decorate decorate= no-decorate decorate-refs= graph oneline " +
			"pickaxe-regex pickaxe-all " +
			"abbrev-commit no-abbrev-commit abbrev= date= relative-date format= pretty pretty= follow no-color color " +
			"color= " +
			"no-patch full-diff no-notes no-mailmap left-right cherry-mark boundary source"},
	"rev-list": {short: "iEF", valued: "n", counts: true, values: isPretty, operand: isInRepository, least: 0,
		most: anyNumber, next: historyValues, long: historyFlags + "count abbrev-commit abbrev= left-right oneline"},
	"diff": {short: "bwzpu", valued: "U", counts: true, values: isName, operand: isInRepository, most: anyNumber,
		next: "unified diff-filter",
		long: namesFlags + patchFlags + "cached staged exit-code quiet merge-base no-color color color= " +
			"ignore-all-space ignore-space-change ignore-blank-lines"},
	"grep": {short: "acEFGhHiIlLnopqvwW", valued: "ABCm", counts: true, operand: isInRepository, least: 1,
		most: anyNumber, pattern: true, next: "after-context before-context context max-count max-depth",
		long: "after-context= all-match basic-regexp before-context= break cached color color= column context= count " +
			"extended-regexp files-with-matches files-without-match fixed-strings full-name function-context heading " +
			"ignore-case invert-match line-number max-count= max-depth= name-only no-color null only-matching quiet " +
			"show-function text word-regexp"},
	"blame": blame, "annotate": blame,
	"branch": {short: "arviq", values: isReferenceValue, operand: isInRepository, most: anyNumber,
		next: referenceValues, long: referenceFlags + "all remotes verbose show-current no-column no-abbrev"},
	"tag": {short: "li", joined: "n", values: isReferenceValue, operand: isInRepository, most: anyNumber,
		next: referenceValues, long: referenceFlags + "no-column"},
	"symbolic-ref": {short: "q", operand: isInRepository, least: 1, most: 1, long: "quiet short"},
	"rev-parse": {short: "q", values: isName, operand: isInRepository, most: anyNumber,
		long: "show-toplevel is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository " +
			"show-prefix show-cdup show-object-format abbrev-ref abbrev-ref= short short= verify quiet symbolic " +
			"symbolic-full-name all branches tags remotes"},
	"ls-files": {short: "cdmostuz", operand: isInRepository, most: anyNumber,
		long: "cached deleted modified others stage unmerged ignored exclude-standard full-name directory " +
			"error-unmatch"},
	"describe": {values: isName, operand: isInRepository, most: anyNumber,
		long: "all tags always long exact-match abbrev="},
	"merge-base":     {operand: isInRepository, least: 2, most: 2, long: "all is-ancestor fork-point octopus"},
	"remote":         {short: "v", most: 0, long: "verbose"},
	"remote get-url": {operand: isName, least: 1, most: 1, long: "push all"},
	"stash list":     {most: 0},
	"reflog":         {valued: "n", counts: true, values: isPretty, most: 0, next: historyValues, long: reflogFlags},
	"reflog show": {valued: "n", counts: true, values: isPretty, operand: isInRepository, most: 1,
		next: historyValues, long: reflogFlags},
	"shortlog": {short: "sne", operand: isInRepository, least: 0, most: anyNumber,
		long: "summary numbered email no-merges since= until= all"},
	"show-ref": {short: "ds", operand: isInRepository, most: anyNumber,
		long: "tags heads branches dereference head hash abbrev"},
	"count-objects": {short: "vH", most: 0, long: "verbose human-readable"},
	"ls-tree": {short: "rdtlz", operand: isInRepository, least: 1, most: anyNumber,
		long: "name-only name-status long full-name full-tree abbrev="},
	"name-rev": {operand: isInRepository, least: 1, most: anyNumber, long: "tags name-only always"},
	"cherry":   {short: "v", operand: isInRepository, most: 3},
	"show": {short: "pubwz", counts: true, valued: "U", values: isPretty, operand: isInRepository, most: anyNumber,
		long: patchFlags + namesFlags + "oneline no-patch format= pretty pretty= date= abbrev-commit abbrev= " +
			"decorate no-decorate no-color color color= no-notes"},
	"for-each-ref": {values: isReferenceValue, operand: isInRepository, most: anyNumber,
		next: referenceValues + " count", long: referenceFlags + "count= omit-empty"},
	"cat-file":   {short: "tsep", operand: isInRepository, least: 1, most: 2},
	"stash show": {short: "p", operand: isInRepository, most: 1, long: "patch stat name-only include-untracked"},
}

// blame prints the lines of a file, each with the commit that it comes from.
var blame = looker{short: "bcCefklMnpstw", texts: "L", operand: isInRepository, least: 1, most: anyNumber,
	long: "abbrev= color-by-age color-lines date= first-parent line-porcelain porcelain root show-email " +
		"show-name show-number since="}

const (
	historyFlags = "all branches branches= tags tags= remotes remotes= max-count= skip= since= until= after= before= " +
		"author= committer= grep= all-match invert-grep regexp-ignore-case extended-regexp fixed-strings merges " +
		"no-merges first-parent reverse topo-order date-order author-date-order full-history ancestry-path " +
		"simplify-by-decoration no-walk ignore-missing not "
	namesFlags = "stat stat= shortstat numstat summary compact-summary name-only name-status diff-filter= no-renames " +
		"find-renames find-renames= no-ext-diff no-textconv "
)

// historyValues are the options of git log and similar commands whose value may be the next word.
const historyValues = "grep author committer since until after before max-count skip date diff-filter unified"

// referenceFlags are options with which git lists references.
const referenceFlags = "list merged merged= no-merged no-merged= contains contains= no-contains no-contains= " +
	"points-at= sort= format= color color= no-color ignore-case "

// referenceValues are the options of referenceFlags whose value may be the next word.
const referenceValues = "merged no-merged contains no-contains points-at sort format"

const reflogFlags = "date= no-abbrev-commit all max-count= skip= since= until= grep= author= oneline format= pretty="

// patchFlags are the options that print lines of files.
const patchFlags = "patch unified= word-diff color-words minimal patience histogram function-context "

// printsFiles reports whether git prints lines of files for a verb with these arguments.
func printsFiles(verb string, args []string) bool {
	has := func(of map[string]bool) bool { return slices.ContainsFunc(args, func(a string) bool { return of[a] }) }
	switch verb {
	case "show", "stash show", "grep", "blame", "annotate":
		return true
	case "cat-file":
		return !isAmong("-t -s -e", args[0]) || slices.ContainsFunc(args[1:],
			func(a string) bool { return !isOperand(a) })
	case "diff":
		return !has(namesOnly) || slices.ContainsFunc(args, isPatchFlag)
	}
	return verb == "log" && slices.ContainsFunc(args, isPatchFlag)
}

// isPatchFlag reports whether an argument makes git print lines of files, or reveal whether files contain a line.
func isPatchFlag(a string) bool {
	if !strings.HasPrefix(a, "--") {
		return len(a) > 1 && a[0] == '-' && strings.ContainsAny(a, "puUSG")
	}
	name, _, _ := strings.Cut(a[2:], "=")
	return slices.Contains(strings.Fields(patchFlags), name)
}

// namesOnly are the options that make git diff print names and numbers instead of lines of files.
var namesOnly = words("--stat --shortstat --numstat --summary --compact-summary --name-only --name-status --quiet")

// readsTree are the git commands that compare the files of the working tree.
var readsTree = words("status diff ls-files grep blame annotate")

// looksAtRepository returns the parts that a git command reads, or nil if the command may do more than read.
func looksAtRepository(argv []string) *Repository {
	if argv[0] != "git" {
		return nil
	}
	r, args := &Repository{Dir: "."}, argv[1:]
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch {
		case args[0] == "--no-pager" || args[0] == "--no-optional-locks":
			args = args[1:]
		case args[0] == "-C" && r.Dir == "." && len(args) > 1 && isPath(args[1]):
			r.Dir, args = args[1], args[2:]
		default:
			return nil
		}
	}
	if len(args) == 0 {
		return nil
	}
	verb, args := args[0], args[1:]
	if len(args) > 0 {
		if _, two := repositoryLookers[verb+" "+args[0]]; two {
			verb, args = verb+" "+args[0], args[1:]
		}
	}
	l, known := repositoryLookers[verb]
	operands, ok := l.flags(args)
	if !known || !ok || creates(verb, args, len(operands)) || !l.may(len(operands)) {
		return nil
	}
	if l.pattern {
		operands = operands[1:] // the pattern to search for
	}
	if slices.ContainsFunc(operands, func(at int) bool { return !l.operand(args[at]) }) {
		return nil
	}
	r.Tree, r.Prints = readsTree[verb], printsFiles(verb, args)
	return r
}

// may reports whether n operands are permitted.
func (l looker) may(n int) bool { return n >= l.least && (l.most < 0 || n <= l.most) }

// creates reports whether git may create a branch or a tag. With operands, git lists branches or tags only if --list is
// given. git tag -l lists too, but git branch -l creates a branch in earlier versions.
func creates(verb string, args []string, operands int) bool {
	return operands > 0 && (verb == "branch" || verb == "tag") && !slices.Contains(args, "--list") &&
		!(verb == "tag" && slices.Contains(args, "-l"))
}

// repositoryOf returns the parts of a repository that a line reads, if all its git commands read the same repository
// and no other program prints a file. It also returns the paths that the other programs examine, as in [ -d .git ] &&
// git status. For every other line it returns nil.
func repositoryOf(pieces []piece) (r *Repository, looks []string) {
	for i := range pieces {
		p := &pieces[i]
		if p.argv[0] != "git" {
			var other Judgment
			if !other.looks(p) || len(other.Reads)+len(other.Needs) > 0 || other.Walks || p.input != "" {
				return nil, nil
			}
			looks = append(looks, other.Looks...)
			continue
		}
		one := looksAtRepository(p.argv)
		if one == nil || len(p.globs) > 0 || p.input != "" || r != nil && r.Dir != one.Dir {
			return nil, nil
		}
		if r != nil {
			one.Tree, one.Prints = one.Tree || r.Tree, one.Prints || r.Prints
		}
		r = one
	}
	return r, looks
}

// isInRepository reports whether s can be a revision, or a path within the repository.
func isInRepository(s string) bool {
	return inRepository(s) && !slices.Contains(strings.Split(s, "/"), "..")
}

var inRepository = lazyregexp.New(`^[A-Za-z0-9_.@^*][-A-Za-z0-9_./@^~:{}+=, *]*$`).MatchString

// isPretty reports whether each % in the value is a field of the commit or of a date. Other fields make git verify
// signatures or run itself.
var isPretty = lazyregexp.New(`^(?:[^%]|%(?:[-+ ]?(?:[HhTtPpdDeSsfbBnmMYyjF%]|[ac][nNeElLdDrtiIsh]|g[dDnNeEs])|` +
	`C(?:red|green|blue|reset|\([a-z, ]*\))|x[0-9a-fA-F]{2}|[<>]{1,2}\|?\([0-9a-z,]*\)))*$`).MatchString

// isReferenceValue reports whether an option of a list of references may have the value: a format or a sort key with
// fields of references and commits, a count, or a revision. Other fields make git verify a signature (which runs gpg),
// run itself, or print a file.
func isReferenceValue(s string) bool {
	return isReferenceFormat(s) && (strings.Contains(s, "%") || !isForbiddenField(s))
}

var isReferenceFormat = lazyregexp.New(`^(?:[^%]|%%|%[0-9a-f]{2}|%\(\*?(?:refname|object(?:name|type|size)|upstream|` +
	`push|HEAD|symref|worktreepath|tree|parent|numparent|object|type|tag|` +
	`(?:author|committer|tagger|creator)(?:name|email|date)?|subject|body|contents|color|align|end|if|then|else)` +
	`(?::[a-zA-Z0-9:,=<>+/._ -]*)?\))*$`).MatchString

var isForbiddenField = lazyregexp.New(`^-?\*?(?:signature|raw|describe|trailers)`).MatchString
