package shell_test

import (
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/shell"
)

// TestRepository tests git commands that only examine a repository, with the parts that they examine.
func TestRepository(t *testing.T) {
	for command, want := range map[string]shell.Repository{
		"git status": {Dir: ".", Tree: true}, "git status -sb": {Dir: ".", Tree: true},
		"git -C /srv/app status -uno": {Dir: "/srv/app", Tree: true}, "git --no-pager log -3": {Dir: "."},
		"git log --oneline -n 5 main..HEAD -- a/b":          {Dir: "."},
		"git log --format='%h %an %ad %s' --date=short":     {Dir: "."},
		"git log --since='2 weeks ago' --author=Ana --stat": {Dir: "."}, "git branch -a -vv": {Dir: "."},
		"git branch --show-current": {Dir: "."}, "git branch --sort=-committerdate": {Dir: "."},
		"git rev-parse --short HEAD": {Dir: "."}, "git rev-parse HEAD~1": {Dir: "."}, "git tag -l": {Dir: "."},
		"git diff --stat HEAD^": {Dir: ".", Tree: true}, "git diff --cached --name-only": {Dir: ".", Tree: true},
		"git ls-files -m": {Dir: ".", Tree: true}, "git describe --tags --always": {Dir: "."}, "git remote": {Dir: "."},
		"git rev-list --count HEAD": {Dir: "."}, "git merge-base main HEAD": {Dir: "."},
		"git remote -v": {Dir: "."}, "git stash list": {Dir: "."}, "git log --oneline | head -5": {Dir: "."},
		"git status -s | grep '^??' | wc -l":             {Dir: ".", Tree: true},
		"git branch && git status":                       {Dir: ".", Tree: true},
		"pwd && git status && date":                      {Dir: ".", Tree: true},
		"whoami; ls; git log -1":                         {Dir: "."},
		"[ -d .git ] && git status":                      {Dir: ".", Tree: true},
		"test -d a/.git && git -C a log -1 || echo none": {Dir: "a"},
		"ls -la src && git status --short":               {Dir: ".", Tree: true},
		"git log -p -1":                                  {Dir: ".", Prints: true},
		"git log -3 --patch":                             {Dir: ".", Prints: true},
		"git -C a show HEAD:f":                           {Dir: "a", Prints: true},
		"git diff":                                       {Dir: ".", Tree: true, Prints: true},
		"git diff -p --stat":                             {Dir: ".", Tree: true, Prints: true},
		"git diff -U5":                                   {Dir: ".", Tree: true, Prints: true},
		"git log -S 'a b'":                               {Dir: ".", Prints: true},
		"git log -Gx --oneline":                          {Dir: ".", Prints: true},
		"git log --grep 'a b'":                           {Dir: "."},
		"git blame -L 1,9 f":                             {Dir: ".", Tree: true, Prints: true},
		"git grep -n -e x HEAD -- '*.go'":                {Dir: ".", Tree: true, Prints: true},
	} {
		j, err := shell.Judge(command, shell.Bash)
		if err != nil || j.Repository == nil || *j.Repository != want || j.Class != shell.Opaque {
			t.Errorf("%q looks at %+v, %s (%v); want %+v", command, j.Repository, j.Class, err, want)
		}
	}
}

// TestBesideARepository checks that the paths of a line's other programs are known, because the host has to check them.
func TestBesideARepository(t *testing.T) {
	for command, want := range map[string]string{"git status": "", "[ -d .git ] && git status": ".git",
		"test -e ~/x; ls a 'b c' && git log": "~/x a b c"} {
		j, err := shell.Judge(command, shell.Bash)
		if err != nil || j.Repository == nil || strings.Join(j.Looks, " ") != want {
			t.Errorf("%q: %q, %v", command, j.Looks, err)
		}
	}
}

// TestGitOutsideRepository tests git commands that print files, change something, run a program, or may do so.
func TestGitOutsideRepository(t *testing.T) {
	for command := range strings.Lines(`git
git -c core.fsmonitor=x status
git -C a -C b status
git -C ../$x status
git -C /net/x status
git --git-dir=x status
git --work-tree x status
git --exec-path=x status
git -p log
git status -v
git status | sh
git status; touch x
git status; ls -R x
git status; cat x
git status && wc -l f
[ -d $x ] && git status
[ -n "$(id)" ] && git status
[ -d .git ] && git status && touch x
[ -d .git ] && git -C a status && git -C b status
git log | git -C x log
git log <x
head x | git status
head x; git status
test -d /net/x && git status
journalctl -n 1; git status
touch x && git status
GIT_DIR=x git status
git status > f
git log -L 1,2:f
git log --output=f
git log --outpu=f
git log --ext-diff
git log --textconv
git log --show-signature
git log --format=%G?
git log --format=%+GS
git log '--format=%(describe)'
git log --submodule=diff
git log ../../other
git diff --stat --no-index a b
git diff --stat /etc/passwd /etc/group
git diff --stat ../a ../b
git diff --name-only -O f
git show --show-signature
git show --ext-diff HEAD
git reflog expire --all
git reflog delete
git reflog x
git stash show -x
git stash pop
git shortlog --output=f
git remote prune origin
git show-ref --exclude-existing
git cherry-pick x
git worktree prune
git branch x
git branch -d x
git branch -m x
git branch --edit-description
git branch --format='%(signature)'
git branch --sort=signature
git tag x
git tag -d x
git tag -v x
git remote show x
git remote add x y
git remote update
git rev-parse --git-path x
git rev-parse --parseopt
git ls-files --exclude-from=f
git describe --dirty
git describe --broken
git stash
git fetch
git st
git config --list
git submodule status
git worktree list
/usr/bin/git status
sudo git status
`) {
		if j, err := shell.Judge(command, shell.Bash); err != nil || j.Repository != nil {
			t.Errorf("%q looks at a repository (%v)", command, err)
		}
	}
}
