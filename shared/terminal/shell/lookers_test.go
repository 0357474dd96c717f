package shell_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/shell"
)

// TestLookersInTable checks that testdata/lookers.txt has a command for each program that may run without approval. The
// keeper's tests run these commands next to hostile configurations.
func TestLookersInTable(t *testing.T) {
	text, err := os.ReadFile("testdata/lookers.txt")
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		j, err := shell.Judge(strings.TrimSpace(line), shell.Bash)
		if err != nil || j.Class != shell.ReadOnly {
			t.Errorf("%q is %s, %v", line, j.Class, err)
			continue
		}
		for _, argv := range j.Programs() {
			tried[argv[0]] = true
		}
	}
	shell.Lookers(func(name string) {
		if !tried[name] {
			t.Errorf("%s is not tried", name)
		}
	})
}

// TestEverydayLines checks the share of testdata/everyday.txt that runs without approval. The file has lines that
// people type to look at something.
func TestEverydayLines(t *testing.T) {
	text, err := os.ReadFile("testdata/everyday.txt")
	if err != nil {
		t.Fatal(err)
	}
	all, asked := 0, 0
	for line := range strings.Lines(string(text)) {
		j, err := shell.Judge(strings.TrimSpace(line), shell.Bash)
		if err != nil {
			t.Errorf("%q: %v", line, err)
		}
		if all++; j.Class != shell.ReadOnly && j.Repository == nil {
			asked++
		}
	}
	if all < 250 || asked*100 > 15*all {
		t.Errorf("%d of %d are asked about", asked, all)
	}
}

// TestNeeds checks which folders must be among those that may be read, although no word of the command names them.
func TestNeeds(t *testing.T) {
	journal := []string{"/var/log/journal"}
	for command, want := range map[string][]string{"journalctl -n 5": journal, "systemctl status": journal,
		"systemctl is-active x": nil, "find . -name x": nil, "uname; dmesg | tail": journal,
		"docker inspect x": {"/var/lib/docker"}} {
		j, err := shell.Judge(command, shell.Bash)
		if err != nil || j.Class != shell.ReadOnly || !slices.Equal(j.Needs, want) {
			t.Errorf("%q is %s and needs %q (%v), want %q", command, j.Class, j.Needs, err, want)
		}
	}
}

// TestChangesByLookers tests commands that do or show more than reading, of programs that may otherwise run without
// approval.
func TestChangesByLookers(t *testing.T) {
	for command := range strings.Lines(`find . -delete
find -L .
find -H l
find . -exec ls {} +
find /proc -type f -exec file {} +
find . -fprint x
find . -name
find . -files0-from f
find /net/h -name x
find . -newer /proc/self/root/x
journalctl -f
journalctl -D x
journalctl -M x
journalctl --vacuum-size=1
journalctl --file=x
journalctl --root x
journalctl /usr/bin/x
systemctl
systemctl status -H x
systemctl status --root=x
systemctl restart x
systemctl cat x
systemctl edit x
diff -r a b
diff -l a b
diff a
diff --to-file=a b c
grep -e x
grep -f p f
docker inspect --x y
docker -H x ps
docker --context x ps
docker exec x ls
git status
`) {
		if j, err := shell.Judge(command, shell.Bash); err != nil || j.Class == shell.ReadOnly {
			t.Errorf("%q is %s (%v)", command, j.Class, err)
		}
	}
}
