package shell_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// psWords lists words for ps, including those that it can read in two ways.
var psWords = strings.Fields(`-e -ef -eF -eLf -eo -aux -ely -A -a -x -u -U -t -p -o -C -G -L -T -H -f -F -j -l -w -ww -c
	-d -y -m -E -N -s -O -k -q -g aux axl ax e T -- 0 1 root e nosuch pid,args args args=, pid:9,comm %a %cpu= user:x
	--sort=-rss --sort=+pid,-comm --sort=nosuch --forest --deselect --headers --no-headers --pid=1 --user=root --user=x
	--format=args --cols=9999 --width=x --rows=-1`)

// psLines returns lines of ps: letters next to e after one dash, words next to words with e, and random words.
func psLines() (lines []string) {
	const letters = "AadefFjlHLTwxycouUpCtG"
	for _, a := range letters {
		for _, b := range letters {
			lines = append(lines, fmt.Sprintf("ps -e%c%c", a, b), fmt.Sprintf("ps -%ce%c", a, b))
		}
	}
	for _, form := range []string{"-e", "-ef", "-eF", "-eLf", "-aux", "-e -o", "-e -o args", "-eo",
		"-eo args --sort=rss"} {
		for _, w := range psWords {
			lines = append(lines, "ps "+form+" "+w, "ps "+w+" "+form)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		line := "ps"
		for range 1 + random.IntN(4) {
			line += " " + psWords[random.IntN(len(psWords))]
		}
		lines = append(lines, line)
	}
	return lines
}

// TestEnvironmentInPs checks that no line of ps that may run without approval prints the environment of a process,
// however ps reads the line. The test has a terminal, as a host does, because some letters of ps select the processes
// of a terminal.
func TestEnvironmentInPs(t *testing.T) {
	realpart.Long(t, "it asks ps two thousand times")
	version, _ := exec.Command("ps", "--version").Output()
	if _, err := exec.LookPath("script"); err != nil || !strings.Contains(string(version), "procps") {
		realpart.Ps.Absent(t, "ps (package procps) or script (package bsdutils) is not there")
	}
	dir := t.TempDir()
	allowed, ran := map[string]bool{}, strings.Builder{}
	for _, line := range psLines() {
		if j, err := shell.Judge(line, shell.Bash); err == nil && j.Class == shell.ReadOnly && !allowed[line] {
			allowed[line] = true
			fmt.Fprintf(&ran, "echo '# %s'\n%s\n", line, j.Command)
		}
	}
	lines, shown := filepath.Join(dir, "lines"), filepath.Join(dir, "shown")
	if err := os.WriteFile(lines, []byte(ran.String()+"echo '# the end'\nps e\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("script", "-qc", "sh "+lines+" >"+shown+" 2>&1", "/dev/null")
	cmd.Env = []string{"CANARY=in-the-environment", "PATH=" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := os.ReadFile(shown)
	if err != nil {
		t.Fatal(err)
	}
	all, end, _ := strings.Cut(string(out), "# the end\n")
	if !strings.Contains(end, "CANARY") || len(allowed) < 100 {
		t.Fatalf("ps shows no environment at all, or only %d lines may run: %s", len(allowed), end)
	}
	for part := range strings.SplitSeq(all, "# ps ") {
		if strings.Contains(part, "CANARY=") {
			line, _, _ := strings.Cut(part, "\n")
			t.Errorf("ps %s shows the environment", line)
		}
	}
}
