package shell_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/testkit/await"
)

// wordsIn returns the words that a real shell reads in a text: the arguments of a function that prints them. The shell
// finds no program to run. bash is also restricted: it accepts no names with a slash and no redirections.
func wordsIn(t testing.TB, command []string, text string) (words []string, ok bool) {
	t.Helper()
	name, err := exec.LookPath(command[0])
	if err != nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(t.Context(), await.Most)
	defer cancel()
	script := `words() { printf '%s\0' "$@"; }` + "\nwords " + text
	cmd := exec.CommandContext(ctx, name, append(command[1:], "-c", script)...)
	cmd.Env = []string{"PATH=/nonexistent", "LC_ALL=C"}
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s cannot read %q: %v", name, text, err)
	}
	for w := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		words = append(words, string(w))
	}
	return words, true
}

var realShells = [][]string{{"sh"}, {"bash", "-r"}, {"zsh", "-f"}, {"busybox", "sh"}}

// FuzzQuote checks that every shell reads a quoted text as the original text.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "a", "a b", "it's", "'", "''", `\`, `a\'b`, "$HOME", "`id`", "$(id)", "a\nb", "-n",
		"--x=~", "a=b",
		"=ls", "~", "{a,b}", "*", "[a]", "!x", "#x", "if", "\t", "é", "\xff", "a\rb", "%1", "^a", "\x01",
		"\x7f\u202e",
		"<(id)"} {
		f.Add(s, s+"x")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		argv := []string{a, b}
		text := shell.Quote(argv)
		if strings.Contains(text, "\x00") {
			return
		}
		for _, real := range realShells[:3] { // busybox gives some bytes a special meaning
			if words, ok := wordsIn(t, real, text); ok && !slices.Equal(words, argv) {
				t.Errorf("%s reads %q in %q, want %q", real, words, text, argv)
			}
		}
	})
}

// FuzzJudge checks that nothing panics or is slow, that every shell reads a read_only command as Judge does, and that
// the canonical form gets the same judgment.
func FuzzJudge(f *testing.F) {
	for _, c := range hostile(f) {
		f.Add(c.command(f))
	}
	for _, s := range []string{"ls 'a b' \"c d\"", "grep 'x|y' f", "date '+%s %H'", "ls -- a", "cat a;", "ls  ~a",
		"du -d1 .", "ls a{b",
		"ls 'a\\'", "ls | grep x 2>/dev/null && wc -l <f; uniq || echo 'it'\\''s'", "ls ~/a $HOME *.go",
		"head -n -5 f", "ls a{b}", "ls @{u}..", "ls {{.X}} \\{a,b}", "ls a=b",
		"ls --color=~", "ls a^b", "ls %1", "ls ]a", "echo $\\\n{x}",
		"sh -c 'sh -c \"ls\"'"} {
		f.Add(s)
	}
	run := stubs(f)
	f.Fuzz(func(t *testing.T, command string) {
		posix, err := shell.Judge(command, shell.POSIX)
		j, errBash := shell.Judge(command, shell.Bash)
		for _, w := range j.Warnings {
			if w.Start < 0 || w.End < w.Start || w.End > len(command) {
				t.Fatalf("%+v is no place in %q", w, command)
			}
		}
		if errBash != nil || j.Class != shell.ReadOnly {
			return
		}
		if err != nil || posix.Command != j.Command {
			t.Fatalf("bash reads %q as %q, sh as %q (%v)", command, j.Command, posix.Command, err)
		}
		again, err := shell.Judge(j.Command, shell.Bash)
		if err != nil || again.Class != shell.ReadOnly || again.Command != j.Command ||
			!slices.EqualFunc(again.Programs(), j.Programs(), slices.Equal) {
			t.Fatalf("%q became %q, and that %+v (%v)", command, j.Command, again, err)
		}
		run(t, j)
	})
}

// stubs returns a function that runs a line in real shells. Each program is a stub that records its call. The function
// checks that no other program was called, and that nothing else happened.
func stubs(f *testing.F) func(t *testing.T, j shell.Judgment) {
	dir, home := f.TempDir(), f.TempDir()
	canary, calls := filepath.Join(home, "canary"), filepath.Join(dir, "calls")
	stub := "#!/bin/sh\n{ printf '%s\\0' \"${0##*/}\" \"$@\"; echo; } >>" + calls + "\n"
	if err := errors.Join(os.WriteFile(canary, []byte("alive"), 0o600),
		os.WriteFile(filepath.Join(dir, "stub"), []byte(stub), 0o755)); err != nil {
		f.Fatal(err)
	}
	return func(t *testing.T, j shell.Judgment) {
		var expected []string
		for _, argv := range j.Programs() {
			if strings.Contains(argv[0], "/") {
				return
			}
			call := strings.Join(argv, "\x00") + "\x00"
			expected = append(expected, strings.ReplaceAll(call, "\x00./", "\x00"))
			if err := os.Symlink("stub", filepath.Join(dir, argv[0])); err != nil && !errors.Is(err, fs.ErrExist) {
				t.Fatal(err)
			}
		}
		line := j.Line("~", nil) // quoted, so that ~ is not expanded
		for _, name := range []string{"bash", "sh"} {
			real, err := exec.LookPath(name)
			if err != nil {
				continue
			}
			_ = os.Remove(calls) // there may be none
			// With -f, patterns stay as they are.
			cmd := exec.CommandContext(t.Context(), real, "-f", "-c", line)
			cmd.Dir, cmd.Env = home, []string{"PATH=" + dir, "LC_ALL=C"}
			out, _ := cmd.CombinedOutput()  // a file that the line reads may be missing
			called, _ := os.ReadFile(calls) // missing if a builtin ran instead
			for call := range strings.Lines(string(called)) {
				call = strings.ReplaceAll(strings.TrimSuffix(call, "\n"), "\x00./", "\x00") // added before a pattern
				if !slices.Contains(expected, call) {
					t.Errorf("%s calls %q for %q, and prints %q", name, call, line, out)
				}
			}
			left, err := os.ReadDir(home)
			if alive, readErr := os.ReadFile(canary); err != nil || readErr != nil || len(left) != 1 ||
				string(alive) != "alive" {
				t.Fatalf("%s did something else for %q: %v, %q", name, line, left, alive)
			}
		}
	}
}

// leading matches the text that shells skip before a command's first word. After another word it would end that
// command.
var leading = regexp.MustCompile(`^(?:[ \t\n]|\\\n)+`)

// FuzzList checks that real shells read a planned list as Parse does. No shell runs it.
func FuzzList(f *testing.F) {
	for _, c := range hostile(f) {
		f.Add(c.command(f))
	}
	for _, s := range []string{`a "b c"  'd'\ e`, `a \"b "\$x" "\y"`, "a \\\n b", "a HEAD~1 x^ a:b", "a b # c", "a;",
		"a \"b\\\nc\"",
		"a 'b\nc'", "a 1.2 --x=y @ %", "a \\~ \\* '' \"\"", "a b=c", "a ~", "a b=~", "a é", "a b\\=~",
		"\\\n\na", "\\\n#b\na"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, command string) {
		allowed, err := shell.Allow(command)
		if err != nil {
			return
		}
		text := leading.ReplaceAllString(command, "")
		if strings.HasPrefix(text, "#") || strings.Contains(text, "/") {
			return
		}
		for _, real := range realShells[:2] {
			if words, ok := wordsIn(t, real, text); ok && !slices.Equal(words, allowed[0]) {
				t.Errorf("%s reads %q in %q, want %q", real, words, command, allowed[0])
			}
		}
	})
}
