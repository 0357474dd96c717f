package shell

import (
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// A Repository is what a git command looks at that reads names, states and messages, changes nothing, and prints no
// file. What git runs beside depends on the repository's configuration. Such a command is therefore opaque, and may
// run without approval only where the host has checked that configuration.
type Repository struct {
	Dir  string // where git looks for the repository: the value of -C, or "."
	Tree bool   // git compares the files of the working tree, too
}

// repositoryLookers has the git commands that only look, with the options that they may have. No option here has git
// print the content of a file, write one, verify a signature (which runs gpg), or run another program.
var repositoryLookers = map[string]looker{
	"status": {short: "sbz", joined: "u", values: isName, operand: isInRepository, most: anyNumber,
		long: "short branch porcelain porcelain= long show-stash untracked-files untracked-files= ignored ignored= " +
			"ahead-behind no-ahead-behind renames no-renames find-renames find-renames="},
	"log": {short: "iEFgsz", valued: "n", counts: true, values: isPretty, operand: isInRepository, most: anyNumber,
		long: historyFlags + namesFlags + "decorate decorate= no-decorate decorate-refs= graph oneline abbrev-commit " +
			"no-abbrev-commit abbrev= date= relative-date format= pretty pretty= follow no-color color color= " +
			"no-patch full-diff no-notes no-mailmap left-right cherry-mark boundary source"},
	"rev-list": {short: "iEF", valued: "n", counts: true, values: isPretty, operand: isInRepository, least: 0,
		most: anyNumber, long: historyFlags + "count abbrev-commit abbrev= left-right oneline"},
	"diff": {short: "bwz", values: isName, operand: isInRepository, most: anyNumber,
		long: namesFlags + "cached staged exit-code quiet merge-base no-color color color= ignore-all-space " +
			"ignore-space-change ignore-blank-lines"},
	"branch": {short: "arviq", values: isSorting, most: 0,
		long: "all remotes verbose show-current list merged no-merged sort= no-color color color= no-column " +
			"ignore-case no-abbrev"},
	"tag": {short: "li", values: isSorting, most: 0, long: "list merged no-merged sort= no-column ignore-case"},
	"rev-parse": {short: "q", values: isName, operand: isInRepository, most: anyNumber,
		long: "show-toplevel is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository " +
			"show-prefix show-cdup show-object-format abbrev-ref abbrev-ref= short short= verify quiet symbolic " +
			"symbolic-full-name all branches tags remotes"},
	"ls-files": {short: "cdmostuz", operand: isInRepository, most: anyNumber,
		long: "cached deleted modified others stage unmerged ignored exclude-standard full-name directory " +
			"error-unmatch"},
	"describe": {values: isName, operand: isInRepository, most: anyNumber,
		long: "all tags always long exact-match abbrev="},
	"merge-base": {operand: isInRepository, least: 2, most: 2, long: "all is-ancestor fork-point octopus"},
	"remote":     {most: 0},
}

const (
	historyFlags = "all branches branches= tags tags= remotes remotes= max-count= skip= since= until= after= before= " +
		"author= committer= grep= all-match invert-grep regexp-ignore-case extended-regexp fixed-strings merges " +
		"no-merges first-parent reverse topo-order date-order author-date-order full-history ancestry-path " +
		"simplify-by-decoration no-walk ignore-missing "
	namesFlags = "stat stat= shortstat numstat summary compact-summary name-only name-status diff-filter= no-renames " +
		"find-renames find-renames= no-ext-diff no-textconv "
)

// namesOnly are the options with which git diff prints names and numbers in place of lines of files.
var namesOnly = words("--stat --shortstat --numstat --summary --compact-summary --name-only --name-status --quiet")

// readsTree are the git commands that compare the files of the working tree.
var readsTree = words("status diff ls-files")

// looksAtRepository returns what a git command looks at, or nil if it may do more than look.
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
	l, known := repositoryLookers[verb]
	operands, ok := l.flags(args)
	if !known || !ok || len(operands) < l.least || l.most >= 0 && len(operands) > l.most {
		return nil
	}
	if slices.ContainsFunc(operands, func(at int) bool { return !l.operand(args[at]) }) ||
		verb == "diff" && !slices.ContainsFunc(args, func(a string) bool { return namesOnly[a] }) {
		return nil
	}
	r.Tree = readsTree[verb]
	return r
}

// isInRepository reports whether s can be a revision, or a path within the repository.
func isInRepository(s string) bool {
	return inRepository(s) && !slices.Contains(strings.Split(s, "/"), "..")
}

var inRepository = lazyregexp.New(`^[A-Za-z0-9_.@^][-A-Za-z0-9_./@^~:{}+=, ]*$`).MatchString

// isPretty reports whether s is a value in which each % is one of the fields that git reads from the commit, or of a
// date. Others have git verify signatures or run itself.
var isPretty = lazyregexp.New(`^(?:[^%]|%(?:[-+ ]?(?:[HhTtPpdDeSsfbBnmMYyjF%]|[ac][nNeElLdDrtiIsh]|g[dDnNeEs])|` +
	`C(?:red|green|blue|reset|\([a-z, ]*\))|x[0-9a-fA-F]{2}|[<>]{1,2}\|?\([0-9a-z,]*\)))*$`).MatchString

// isSorting reports whether s is what references are sorted by, or when they are coloured.
func isSorting(s string) bool { return sortings[s] }

var sortings = words("committerdate authordate creatordate taggerdate refname version:refname v:refname objectname " +
	"always auto never")
