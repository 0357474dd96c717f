package check_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
)

// TestReadme does what README.md tells a newcomer, with README's own code, files and commands: the first mail by hand,
// a tool of one's own, an agent of one's own that has it, and a yes to its first call, by hand and in the browser.
func TestReadme(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		browsertest.Absent(t, "bash")
	}
	if _, err := exec.LookPath("curl"); err != nil {
		browsertest.Absent(t, "curl")
	}
	n := &newcomer{devServer: newDevServer(t), readme: read(t, "../../README.md"), bash: bash}
	n.dir = t.TempDir()

	n.start()
	n.approveByHand("")
	if got := n.mailbox(); len(got) != 1 || got["ana@example.com: The demo is at ten"] != 1 {
		said, _ := os.ReadFile(n.log)
		t.Errorf("the mailbox holds %v\n%s", got, said)
	}
	n.cleanUpByHand()
	n.stop()

	n.build("-overlay", n.withTool())
	n.withAgent()
	n.start()
	words := emphasis.FindStringSubmatch(n.section("A tool of your own"))[1]
	n.approveByHand(`{"agent":"scribe","prompt":"` + oneLine(words) + `"}`)
	n.notes(1)
	t.Run("in the browser", func(t *testing.T) {
		browser := browsertest.New(t, "axe-core")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		browser.Run(ctx, "testdata/readme.mjs", n.url, func() { t.Error("nobody asks for a restart here") })
		n.notes(2)
	})
	n.stop()
}

// newcomer is somebody who has README.md and nothing else.
type newcomer struct {
	*devServer
	readme, bash string
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

// code returns a block of a section: lines that are indented by four spaces, without them.
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

// approveByHand runs the commands of the first run, with another body of /run if one is given, and puts the ids into
// the last of them as a reader would.
func (n *newcomer) approveByHand(body string) {
	n.t.Helper()
	commands := strings.ReplaceAll(n.code("A first run", 0), "localhost:8080", n.addr)
	if body != "" {
		commands = regexp.MustCompile(`\{"prompt":"[^"]*"\}`).ReplaceAllLiteralString(commands, body)
	}
	lines := strings.SplitAfter(strings.ReplaceAll(commands, "\\\n", ""), "\n")
	token, run, rest := lines[0], lines[1], strings.Join(lines[2:], "")

	var asked struct {
		RunID     string
		Approvals []struct{ ApprovalID, ArgsHash string }
	}
	if said := n.shell(token + run); json.Unmarshal(said, &asked) != nil || len(asked.Approvals) != 1 {
		n.t.Fatalf("%s\nanswers %s", run, said)
	}
	rest = strings.Replace(rest, `"approvalId":"…"`, `"approvalId":"`+asked.Approvals[0].ApprovalID+`"`, 1)
	rest = strings.Replace(rest, `"argsHash":"…"`, `"argsHash":"`+asked.Approvals[0].ArgsHash+`"`, 1)
	if said := string(n.shell(token + rest)); !strings.HasPrefix(said, `{"ok":true`) {
		n.t.Errorf("%s\nanswers %s", rest, said)
	}
	// With the reader's own token: who signs in under another address links another account, in which nothing approved
	// for this one is carried out.
	reader := n.as(oneLine(string(n.shell(token + "echo $T\n"))))
	if status := reader.ended(asked.RunID); status != "completed" {
		n.t.Errorf("the run is %s", status)
	}
}

// cleanUpByHand runs the commands for the terminal after the token's, and the approval's with the ids of its card.
func (n *newcomer) cleanUpByHand() {
	n.t.Helper()
	first := strings.SplitAfter(strings.ReplaceAll(n.code("A first run", 0), "\\\n", ""), "\n")
	token, approve := first[0], first[2]
	var asked struct {
		RunID     string
		Approvals []struct{ ApprovalID, ArgsHash string }
	}
	local := func(script string) []byte {
		return n.shell(strings.ReplaceAll(script, "localhost:8080", n.addr))
	}
	if said := local(token + n.code("A terminal", 0)); json.Unmarshal(said, &asked) != nil ||
		len(asked.Approvals) != 1 {
		n.t.Fatalf("the terminal's run answers %s", said)
	}
	approve = strings.Replace(approve, `"approvalId":"…"`, `"approvalId":"`+asked.Approvals[0].ApprovalID+`"`, 1)
	approve = strings.Replace(approve, `"argsHash":"…"`, `"argsHash":"`+asked.Approvals[0].ArgsHash+`"`, 1)
	if said := string(local(token + approve)); !strings.HasPrefix(said, `{"ok":true`) {
		n.t.Errorf("%s\nanswers %s", approve, said)
	}
	reader := n.as(oneLine(string(local(token + "echo $T\n"))))
	if status := reader.ended(asked.RunID); status != "completed" {
		n.t.Errorf("the run is %s", status)
	}
	if _, err := os.Stat(n.onDisk("tmp/db-dump-old.sql")); !os.IsNotExist(err) {
		n.t.Errorf("nothing was deleted: %v", err)
	}
}

func (n *newcomer) shell(script string) []byte {
	n.t.Helper()
	out, err := exec.CommandContext(n.t.Context(), n.bash, "-euc", script).Output()
	if err != nil {
		n.t.Fatalf("%s\n%v", script, err)
	}
	return out
}

// withTool lays README's tool over the sources, and returns the name of the overlay: go build takes it for a file of
// the folder that README names, and the two lines that README says to change as changed.
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

// withAgent writes README's agent into the file that its first line names, and takes over the setting of its command.
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

// notes checks that there are so many notes, each with the words that were approved.
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
