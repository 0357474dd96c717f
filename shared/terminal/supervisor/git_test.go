package supervisor_test

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// monitor makes git status create the file TOLD. filtered does so when git reads the file f.
const (
	monitor  = "git config core.fsmonitor 'touch TOLD; false'; "
	filtered = "git config filter.x.clean 'touch TOLD; cat'; echo y > f; echo 'f filter=x diff=x' > "
	modules  = "git init -q s; cd s; git commit -q --allow-empty -m s; " + monitor + "cd ..; " +
		"printf '[submodule \"s\"]\n path = s\n url = ext::touch TOLD\n update = !touch TOLD\n' > .gitmodules; "
	lfs      = "echo 'f filter=lfs diff=lfs merge=lfs -text' > .gitattributes; echo y > f; "
	included = "printf '[core]\n fsmonitor = touch TOLD; false' > more; "
)

// repositories describes repositories with one commit in which lines ran. A program that git runs from such a
// repository creates the file TOLD. command may run without approval only if the repository is ordinary.
var repositories = map[string]struct {
	lines, command string
	ordinary       string // part of the command's output; empty: the host refuses the command
	acts           bool   // without the host's check, the command makes TOLD
}{
	"fsmonitor":        {monitor, "status", "", true},
	"fsmonitor, above": {monitor + "mkdir a", "-C a status", "", true},
	"hook":             {"cp EVIL .git/hooks/post-index-change; touch f", "status", "nothing to commit", true},
	"hooksPath": {"git config core.hooksPath hooks; mkdir hooks; cp EVIL hooks/post-index-change; touch f",
		"status", "", true},
	"filter":           {filtered + ".gitattributes", "status", "", true},
	"filter, in info":  {filtered + ".git/info/attributes", "status", "", true},
	"attributes alone": {"echo 'f filter=x diff=x' > .gitattributes; echo y > f", "status", "modified:   f", false},
	"textconv": {"echo 'f diff=x' > .gitattributes; git config diff.x.textconv 'touch TOLD; cat'",
		"log -1 --oneline", "", false},
	"external diff":      {"git config diff.external 'touch TOLD'; echo y > f", "diff --stat", "", false},
	"pager":              {"git config core.pager 'touch TOLD; cat'", "log -1 --oneline", "", false},
	"pager of a command": {"git config pager.log 'touch TOLD; cat'", "log -1 --oneline", "", false},
	"alias":              {"git config alias.status '!touch TOLD'", "status", "", false},
	"signatures":         {"git config log.showSignature true; git config gpg.program EVIL", "log -1", "", false},
	"include":            {included + "git config include.path ../more", "status", "", true},
	"include, if":        {included + "git config includeIf.gitdir:/.path \"$PWD/more\"", "status", "", true},
	"worktree's config": {"git config extensions.worktreeConfig true; " +
		"git config --worktree core.fsmonitor 'touch TOLD; false'", "status", "", true},
	"other working tree": {"mkdir a; git config core.worktree \"$PWD/a\"", "status", "", false},
	"promisor": {"git config extensions.partialClone origin; git config remote.origin.url 'ext::touch TOLD'",
		"log -1", "", false},
	"submodule": {"git init -q s; cd s; git commit -q --allow-empty -m s; " + monitor + "cd ..; git add s",
		"status", "", true},
	"submodule, in a log": {"git init -q s; cd s; git commit -q --allow-empty -m s; cd ..; git add s; " +
		"git commit -qm two", "log -1 --oneline --stat", "two", false},
	"bare, below": {"git init -q --bare a; cd a; " + monitor + "git config core.worktree ..; " +
		"git config core.bare false", "-C a status", "", true},
	"git file": {"git init -q ../other; cd ../other; " + monitor + "cd -; rm -rf .git; " +
		"echo gitdir: ../other/.git > .git", "status", "", true},
	"linked, hostile":       {"git worktree add -q ../other; " + monitor, "-C ../other status", "", true},
	"alternates":            {"echo /nowhere > .git/objects/info/alternates", "log -1", "", false},
	"broken config":         {"printf '[core' >> .git/config", "status", "", false},
	"update in .gitmodules": {modules, "status --porcelain", "?? s/", false},
	"submodules of a log":   {modules + "git add s; git config diff.submodule diff", "log -1 -p", "", false},
	"recursion":             {modules + "git config submodule.recurse true", "grep x", "", false},
	"LFS":                   {lfs + "git config filter.lfs.clean 'touch TOLD; cat'", "status", "", true},
	"LFS, not here":         {lfs, "status --porcelain", " M f", false},
	"ssh":                   {"git config core.sshCommand 'touch TOLD'; git remote add o h:r", "remote -v", "", false},
	"instead of":            {"git config url.ext::sh.insteadOf x:; git remote add o x:y", "remote -v", "", false},
	"address that runs":     {"git remote add o 'ext::touch TOLD'", "remote -v", "ext::touch", false},
	"missing object": {"git config remote.o.url 'ext::touch TOLD'; git config remote.o.promisor true; " +
		"git config core.repositoryFormatVersion 1; git config extensions.partialClone o; " +
		"rm -f .git/objects/$(git rev-parse HEAD:f | sed 's,..,&/,')", "show --stat HEAD", "", false},
	"missing object, no promisor": {"git config remote.o.url 'ext::touch TOLD'; touch .git/objects/pack/x.promisor; " +
		"rm -f .git/objects/$(git rev-parse HEAD:f | sed 's,..,&/,')", "show HEAD", "fatal: unable to read", false},
	"pickaxe": {"echo 'f diff=x' > .gitattributes; git config diff.x.textconv 'touch TOLD; cat'", "log -S x", "",
		true},
	"grep's config": {"git config grep.fallbackToNoIndex true", "grep x", "", false},
	"todo elsewhere": {"mkdir .git/rebase-merge; printf 'refs/heads/main' > .git/rebase-merge/head-name; " +
		"git rev-parse HEAD > .git/rebase-merge/onto; : > .git/rebase-merge/done; echo 'exec CANARY' > ../secret; " +
		"ln -s \"$PWD/../secret\" .git/rebase-merge/git-rebase-todo; : > .git/rebase-merge/interactive", "status",
		"", false},
	"pipe for names":          {"mkfifo .mailmap", "log -1", "", false},
	"pipe for attributes":     {"echo y > f; mkfifo .gitattributes", "diff", "", false},
	"pipe for ignored, below": {"mkdir a; mkfifo a/.gitignore; touch a/x", "status", "", false},
	"pipe for a reference":    {"mkfifo .git/refs/heads/q", "branch", "", false},
	"pipe for a file":         {"rm f; mkfifo f; echo x > g; git add g", "grep --no-color x", "g:x", false},
	"config is a pipe":        {"rm .git/config; mkfifo .git/config", "status", "", false},

	"linked":  {"git worktree add -q ../other", "-C ../other status", "On branch other", false},
	"changed": {"echo y > f; echo x > new", "status --porcelain --branch", " M f", false},
	"merging": {"git rev-parse HEAD > .git/MERGE_HEAD", "status", "All conflicts fixed", false},
	"remote": {"git remote add origin https://x.example/y; git update-ref refs/remotes/origin/main HEAD; " +
		"git branch -q -u origin/main; git config branch.main.vscode-merge-base origin/main",
		"status --porcelain=v2 -b", "# branch.upstream origin/main", false},
	"packed":          {"git gc -q", "log --oneline --format='%h %s'", "one", false},
	"folder's name":   {"mkdir 'a b'; mv .git f 'a b'", "-C 'a b' status", "nothing to commit", false},
	"below":           {"mkdir a", "-C a rev-parse --show-prefix", "a/", false},
	"top":             {"mkdir a", "-C a rev-parse --show-toplevel", "DIR", false},
	"no repository":   {"rm -rf .git", "status", "fatal: not a git repository", false},
	"no commit":       {"rm -rf .git; git init -q", "status", "No commits yet", false},
	"detached":        {"git checkout -q --detach", "branch", "HEAD detached at", false},
	"pipeline":        {"echo y > f", "status --porcelain | grep f | wc -l", "1", false},
	"lines of a diff": {"echo y > f", "diff", "@@ -1 +1 @@", false},
	"a commit":        {"", "show --oneline HEAD", "@@ -0,0 +1 @@", false},
	"a file":          {"", "show HEAD:f", "x", false},
	"an object":       {"", "cat-file -p HEAD:f", "x", false},
	"references": {"git tag one", "for-each-ref --count 3 --sort -refname --format '%(refname:short)'",
		"one", false},
	"tags":      {"git tag one", "tag --list 'o*'", "one", false},
	"each line": {"", "annotate f", "1)x", false},
	"each line, converted": {"git config diff.x.textconv EVIL; echo 'f diff=x' > .gitattributes", "annotate f", "",
		true},
	"a driver": {"git config diff.x.textconv EVIL; echo 'f diff=x' > .gitattributes; echo y > f", "diff", "",
		true},
	"external":        {"git config diff.external EVIL; echo y > f", "diff", "", true},
	"names of a diff": {"echo y > f", "diff --stat", "1 file changed", false},
}

// TestGitThatRunsUnasked reads repositories. Some would make git run another program.
func TestGitThatRunsUnasked(t *testing.T) {
	t.Parallel()
	s := sshd.Start(t, sshd.Options{})
	k, err := supervisor.Open(t.Context(), s.Dial())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range repositories {
		t.Run(name, func(t *testing.T) {
			dir, told := newRepository(t, c.lines)
			acted := func() bool {
				_, err := os.Stat(told)
				return err == nil
			}
			j, err := shell.Judge("git "+c.command, shell.Bash)
			if err != nil || j.Repository == nil {
				t.Fatalf("it does not only look: %v", err)
			}
			run := func(plain bool, o supervisor.Opens) (string, error) {
				var out strings.Builder
				_, err := k.Start(t.Context(), supervisor.Start{ID: rand.Text(), Command: "git " + c.command,
					Grammar: shell.Bash, Plain: plain, Limit: await.Most, Cwd: dir, Opens: o}, &out)
				return out.String(), err
			}
			o := supervisor.Opens{Git: supervisor.GitHistory, Looks: []string{j.Repository.Dir}, Walks: true}
			if j.Repository.Tree {
				o.Git = supervisor.GitTree
			}
			out, err := run(true, o)
			switch refused := errors.Is(err, supervisor.ErrGit) || errors.Is(err, supervisor.ErrSpecial); {
			case acted():
				t.Error("a program of the repository has run")
			case c.ordinary == "" && !refused:
				t.Errorf("it ran: %v, %q", err, out)
			case c.ordinary != "" &&
				(err != nil || !strings.Contains(out, strings.ReplaceAll(c.ordinary, "DIR", dir))):
				t.Errorf("it printed %q, %v; want %q", out, err, c.ordinary)
			}
			if left, _ := filepath.Glob(s.Home + "/.countersign/*/git"); len(left) > 0 { // the pattern is valid
				t.Errorf("the host keeps %q", left)
			}
			if c.acts {
				if out, err := run(false, supervisor.Opens{}); err != nil || !acted() {
					t.Errorf("what was planted does nothing, so that this proves nothing: %q, %v", out, err)
				}
			}
		})
	}
}

// TestGitInAFolder has git print files only of a repository that lies in one of the folders, wherever git is run.
func TestGitInAFolder(t *testing.T) {
	t.Parallel()
	s := sshd.Start(t, sshd.Options{})
	k, err := supervisor.Open(t.Context(), s.Dial())
	if err != nil {
		t.Fatal(err)
	}
	dir, _ := newRepository(t, "mkdir below; git worktree add -q ../linked; ln -s . self")
	for _, c := range []struct {
		at, within string
		want       error
	}{{dir, dir, nil}, {dir + "/below", dir, nil}, {dir + "/below", dir + "/below", supervisor.ErrOutside},
		{dir, "/srv", supervisor.ErrOutside}, {dir, dir + "/self", nil},
		{dir + "/../linked", dir + "/../linked", supervisor.ErrOutside}, {dir + "/../linked", dir + "/..", nil}} {
		var out strings.Builder
		_, err := k.Start(t.Context(), supervisor.Start{ID: rand.Text(), Command: "git show --no-color",
			Grammar: shell.Bash, Plain: true, Limit: await.Most, Cwd: "/", Opens: supervisor.Opens{
				Git: supervisor.GitHistory, Looks: []string{c.at}, Walks: true, Within: []string{c.within}}}, &out)
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s in %s: %v, %q; want %v", c.at, c.within, err, out.String(), c.want)
		}
	}
}

// newRepository makes a repository with one commit, and runs the lines there.
func newRepository(t *testing.T, lines string) (dir, told string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, told = filepath.Join(root, "repository"), filepath.Join(root, "told")
	evil := filepath.Join(root, "evil")
	program := "#!/bin/sh\ntouch " + told + "\n"
	err = errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(evil, []byte(program), 0o700)) // #nosec G306 -- a program
	cmd := exec.CommandContext(t.Context(), "sh", "-ec",
		"git init -q -b main; echo x > f; git add f; git commit -qm one\n"+
			strings.NewReplacer("TOLD", told, "EVIL", evil).Replace(lines))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+root, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	if out, ran := cmd.CombinedOutput(); err != nil || ran != nil {
		t.Fatalf("%v, %v: %s", err, ran, out)
	}
	_ = os.Remove(told) // what made the repository may have run it
	return dir, told
}
