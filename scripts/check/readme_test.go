package check_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// TestReadme follows README.md and the pages that its table links, with their own code, files and commands: the first
// e-mail with curl, the demo host, a plan, a tool, an agent that has the tool, and an approval of the agent's first
// call, with curl and in the browser.
func TestReadme(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		realpart.Shell.Absent(t, err.Error())
	}
	if _, err := exec.LookPath("curl"); err != nil {
		realpart.Shell.Absent(t, err.Error())
	}
	n := &newcomer{devServer: newDevServer(t), readme: pages(t), sh: sh}
	n.dir = t.TempDir()

	n.start()
	n.approveByHand("")
	if got := n.mailbox(); len(got) != 1 || got["ana@example.com: The demo is at ten"] != 1 {
		said, _ := os.ReadFile(n.log)
		t.Errorf("the mailbox holds %v\n%s", got, said)
	}
	n.cleanUpByHand()
	n.planByHand()
	n.stop()

	n.program = filepath.Join(t.TempDir(), "dev")
	if err := build(n.program, "-overlay", n.withTool()); err != nil {
		t.Fatal(err)
	}
	n.withAgent()
	n.start()
	words := emphasis.FindStringSubmatch(n.section("A tool of your own"))[1]
	n.approveByHand(`{"agent":"scribe","prompt":"` + oneLine(words) + `"}`)
	n.notes(1)
	t.Run("in the browser", func(t *testing.T) {
		browser := browsertest.New(t, "axe-core")
		browser.Run("testdata/readme.mjs", n.url, nil)
		n.notes(2)
	})
	n.stop()
}

// pages returns README.md and the pages that its table links.
func pages(t *testing.T) string {
	t.Helper()
	text := read(t, "../../README.md")
	for _, page := range []string{"terminal", "engine/planner", "agent/tool", "agent/registry"} {
		if !strings.Contains(text, "](shared/"+page+"/README.md)") {
			t.Errorf("README.md does not link shared/%s", page)
		}
		text += read(t, "../../shared/"+page+"/README.md")
	}
	return text
}

// newcomer is a reader who has only README.md and the pages that it links.
type newcomer struct {
	*devServer
	readme, sh string
}

var emphasis = regexp.MustCompile(`\*([^*]+)\*`)

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func (n *newcomer) section(title string) string {
	n.t.Helper()
	_, from, ok := strings.Cut(n.readme, "\n## "+title+"\n")
	if !ok {
		n.t.Fatalf("README.md has no section %q", title)
	}
	section, _, _ := strings.Cut(from, "\n## ")
	return section
}

// code returns a block of a section: the lines that are indented by four spaces, without the indent.
func (n *newcomer) code(title string, number int) string {
	n.t.Helper()
	var blocks []string
	in := false
	for line := range strings.Lines(n.section(title)) {
		code, indented := strings.CutPrefix(line, "    ")
		switch {
		case indented && in, in && line == "\n":
			blocks[len(blocks)-1] += strings.TrimPrefix(line, "    ")
		case indented:
			blocks = append(blocks, code)
		}
		in = indented || in && line == "\n"
	}
	if len(blocks) <= number {
		n.t.Fatalf("%s has %d blocks of code", title, len(blocks))
	}
	return blocks[number]
}

// approveByHand runs the commands of the first run, with another body of /run if one is given. They print the waiting
// run, the answer to the approval, and the mailbox.
func (n *newcomer) approveByHand(body string) {
	n.t.Helper()
	commands := n.code("A first run", 0)
	if body != "" {
		commands = regexp.MustCompile(`\{"prompt":"[^"]*"\}`).ReplaceAllLiteralString(commands, body)
	}
	n.approved(n.byHand(commands), 0)
}

// approved checks that the answers have a run that waits for one approval, and then the approval, with which the run
// has ended.
func (n *newcomer) approved(answers []answer, from int) {
	n.t.Helper()
	if len(answers) < from+2 || len(answers[from].Approvals) != 1 || answers[from].Status != "awaiting_confirmation" {
		n.t.Fatalf("the run answers %+v", answers)
	}
	if yes := answers[from+1]; !yes.OK || yes.Status != "completed" {
		n.t.Errorf("the yes answers %+v", yes)
	}
}

// answer is an answer of the server, as README's commands print it.
type answer struct {
	OK        bool
	Status    string
	SessionID string
	Approvals []struct{ ApprovalID, ArgsHash string }
}

// byHand runs commands of README in the shell, unchanged except for the server's address, and returns the answers that
// they print.
func (n *newcomer) byHand(commands string) (answers []answer) {
	n.t.Helper()
	script := strings.NewReplacer("localhost:8080", n.addr, "127.0.0.1:8080", n.addr).Replace(commands)
	said := n.shell(script)
	for in := json.NewDecoder(strings.NewReader(string(said))); ; {
		var one answer
		err := in.Decode(&one)
		if errors.Is(err, io.EOF) {
			return answers
		}
		if err != nil {
			n.t.Fatalf("%s\nprints %s: %v", script, said, err)
		}
		answers = append(answers, one)
	}
}

// cleanUpByHand runs the commands for the terminal after those of the first run, as a reader would in one shell.
func (n *newcomer) cleanUpByHand() {
	n.t.Helper()
	n.approved(n.byHand(n.code("A first run", 0)+n.code("Try it on the demo host", 0)), 3)
	if _, err := os.Stat(n.onDisk("tmp/db-dump-old.sql")); !os.IsNotExist(err) {
		n.t.Errorf("nothing was deleted: %v", err)
	}
}

// planByHand runs the commands for a plan after those of the first run: a plan waits, is confirmed, and creates its
// issue.
func (n *newcomer) planByHand() {
	n.t.Helper()
	answers := n.byHand(n.code("A first run", 0) + n.code("Try a plan", 0))
	if len(answers) != 6 {
		n.t.Fatalf("the plan's commands print %+v", answers)
	}
	if waits := answers[3]; waits.Status != "AWAITING_CONFIRMATION" || waits.SessionID == "" {
		n.t.Errorf("the refined plan is %+v", waits)
	}
	if done := answers[4]; done.Status != "COMPLETED" {
		n.t.Errorf("the confirmed plan is %+v", done)
	}
}

func (n *newcomer) shell(script string) []byte {
	n.t.Helper()
	out, err := exec.CommandContext(n.t.Context(), n.sh, "-euc", script).Output()
	if err != nil {
		n.t.Fatalf("%s\n%v", script, err)
	}
	return out
}

// withTool adds README's tool to the sources by an overlay, and returns the overlay's name. The overlay adds the file
// to the folder that README names, and changes the two lines that README says to change.
func (n *newcomer) withTool() string {
	n.t.Helper()
	code := n.code("A tool of your own", 0)
	if _, own, _ := strings.Cut(code, "\ntype "); strings.Count(own, "\n") > 15 {
		n.t.Errorf("a tool of one's own takes %d lines", strings.Count(own, "\n"))
	}
	parts := regexp.MustCompile(`(?s)var (\w+) = tool\.Define.*Name: ("\w+")`).FindStringSubmatch(code)
	if parts == nil {
		n.t.Fatalf("this defines no tool:\n%s", code)
	}
	replace := map[string]string{}
	lay := func(path, text string) {
		at, err := filepath.Abs(filepath.Join("../..", path))
		if err != nil {
			n.t.Fatal(err)
		}
		replace[at] = filepath.Join(n.dir, filepath.Base(path))
		write(n.t, replace[at], text)
	}
	change := func(path, at, added string) {
		text := read(n.t, filepath.Join("../..", path))
		if strings.Count(text, at) != 1 {
			n.t.Fatalf("%s does not have one %s", path, at)
		}
		lay(path, strings.Replace(text, at, at+added+", ", 1))
	}
	lay("shared/app/tools/note.go", code)
	change("shared/app/tools/tools.go", "tool.NewSet(", parts[1])
	change("shared/app/chat.go", "BuiltIn = append([]string{", parts[2])
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		n.t.Fatal(err)
	}
	file := filepath.Join(n.dir, "overlay.json")
	write(n.t, file, string(overlay))
	if out, err := exec.CommandContext(n.t.Context(), "go", "test", "-overlay", file,
		"../../shared/app/tools").CombinedOutput(); err != nil {
		n.t.Errorf("with the tool: %v\n%s", err, out)
	}
	return file
}

// withAgent writes README's agent to the file that its first line names, and applies the setting of its command.
func (n *newcomer) withAgent() {
	n.t.Helper()
	file := n.code("An agent of your own", 0)
	name := strings.TrimPrefix(strings.SplitN(file, "\n", 2)[0], "# ")
	setting, _, _ := strings.Cut(n.code("An agent of your own", 1), " ")
	if setting != "AGENTS="+filepath.Dir(name) {
		n.t.Fatalf("the file is %s, and the command sets %s", name, setting)
	}
	if err := os.MkdirAll(filepath.Join(n.dir, filepath.Dir(name)), 0o700); err != nil {
		n.t.Fatal(err)
	}
	write(n.t, filepath.Join(n.dir, name), file)
	n.env = append(n.env, setting)
}

// notes checks the number of notes, and that each has the approved text.
func (n *newcomer) notes(want int) {
	n.t.Helper()
	names, err := filepath.Glob(filepath.Join(n.dir, "*.txt"))
	if err != nil || len(names) != want {
		n.t.Fatalf("there are %d notes, %v, want %d", len(names), err, want)
	}
	for _, name := range names {
		if got := read(n.t, name); got != "the demo is at ten" {
			n.t.Errorf("a note says %q", got)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
