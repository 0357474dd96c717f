// Package cookbook_test runs the programs of the cookbook as their readers do.
package cookbook_test

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// program builds a program of the cookbook. It returns a function that starts it in a folder, without a key.
func program(t *testing.T, name string) func(in string, args ...string) *exec.Cmd {
	t.Helper()
	realpart.Long(t, "it builds a program of the cookbook")
	file := filepath.Join(t.TempDir(), name)
	if out, err := exec.Command("go", "build", "-o", file, "./"+name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return func(in string, args ...string) *exec.Cmd {
		ctx, cancel := context.WithTimeout(context.Background(), await.Most)
		t.Cleanup(cancel)
		cmd := exec.CommandContext(ctx, file, args...)
		cmd.Dir = in
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
			return strings.HasPrefix(v, "GEMINI_") || strings.HasPrefix(v, "GOOGLE_") || strings.HasPrefix(v, "VERTEX_")
		})
		return cmd
	}
}

// output runs a program to its end and returns its output, together with the answers of its script.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var beside bytes.Buffer
	cmd.Stderr = &beside
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, beside.Bytes())
	}
	if !strings.Contains(beside.String(), "a scripted Gemini answers") {
		t.Errorf("it does not say who answers: %s", beside.String())
	}
	return string(out)
}

func TestHello(t *testing.T) {
	t.Parallel()
	if got := output(t, program(t, "hello")(t.TempDir())); got != "21 degrees.\n" {
		t.Errorf("got %q; want %q", got, "21 degrees.\n")
	}
}

// TestScripted runs the program that contains its model's answers, without a model in the environment.
func TestScripted(t *testing.T) {
	t.Parallel()
	const want = "Approved: Mail to ana@example.com {\"text\":\"The demo is at ten.\",\"to\":\"ana@example.com\"}\n" +
		"Ana knows.\n"
	if got, err := program(t, "scripted")(t.TempDir()).CombinedOutput(); err != nil || string(got) != want {
		t.Errorf("%v %q; want got %v", err, got, want)
	}
}

// TestReadme compares the program in the SDK's README.md with the one that runs, and checks that its commands exist.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../shared/countersign/README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("hello/main.go")
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(string(program), "\t", "    ")) {
		if line != "\n" {
			shown.WriteString("    ")
		}
		shown.WriteString(line)
	}
	if !strings.Contains(string(readme), shown.String()) {
		t.Error("shared/countersign/README.md shows another program than scripts/cookbook/hello")
	}
	for _, m := range regexp.MustCompile(`go run \./scripts/cookbook/(\w+)`).FindAllStringSubmatch(string(readme), -1) {
		if _, err := os.Stat(filepath.Join(m[1], "main.go")); err != nil {
			t.Error(err)
		}
	}
}

func TestStructured(t *testing.T) {
	t.Parallel()
	if got := output(t, program(t, "structured")(t.TempDir())); got != "ACME: 12.50 euros by 2027-06-01\n" {
		t.Errorf("got %q; want %q", got, "ACME: 12.50 euros by 2027-06-01\n")
	}
}

// TestSession kills the program in the middle of a tool, continues its session, and asks another question in it.
func TestSession(t *testing.T) {
	t.Parallel()
	start, in := program(t, "session"), t.TempDir()
	id, seen := killedAt(t, start(in), `[check_pump {"number":2}]`)
	if want := "-resume ID\n[check_pump {\"number\":1}]\n[check_pump {\"number\":2}]\n"; seen != want {
		t.Errorf("before: %q", seen)
	}
	resumed := strings.ReplaceAll(output(t, start(in, "-resume", id)), id, "ID")
	if want := "-resume ID\n[check_pump {\"number\":2}]\n[check_pump {\"number\":3}]\n" +
		"All three pumps were checked; the last one: pump 3 runs smoothly.\n"; resumed != want {
		t.Errorf("resumed: %q", resumed)
	}
	asked := strings.ReplaceAll(output(t, start(in, "-resume", id, "-prompt", "And the second one?")), id, "ID")
	if want := "-resume ID\nYou had it checked before: it runs smoothly.\n"; asked != want {
		t.Errorf("asked on: %q", asked)
	}
}

// killedAt starts a program and kills it with SIGKILL when it prints the line. It returns the session's ID, and the
// output without that ID.
func killedAt(t *testing.T, cmd *exec.Cmd, line string) (id, seen string) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		text := lines.Text()
		if rest, ok := strings.CutPrefix(text, "-resume "); ok {
			id, text = rest, "-resume ID"
		}
		seen += text + "\n"
		if text == line {
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if id == "" {
		t.Fatalf("it names no session: %q", seen)
	}
	return id, seen
}

// TestApprove leaves a question open, and answers it in each way in a separate process.
func TestApprove(t *testing.T) {
	t.Parallel()
	const question = "Mail to ana@example.com\n" + `{"Text":"The demo is at ten.","To":"ana@example.com"}` + "\n[y/n] "
	start := program(t, "approve")
	rejected := "The user rejected this; it was not done. The user says: not today"
	for answer, want := range map[string]string{"y": "completed The answer about the mail was: sent.\n",
		"n": "completed The answer about the mail was: " + rejected + ".\n"} {
		in := t.TempDir()
		for _, c := range []struct{ typed, want string }{{"later", "waiting \n"}, {answer, want}} {
			cmd := start(in)
			cmd.Stdin = strings.NewReader(c.typed + "\n")
			if got := output(t, cmd); got != question+c.want {
				t.Errorf("%s: %q", c.typed, got)
			}
		}
		if mails, _ := filepath.Glob(filepath.Join(in, "*.eml")); (len(mails) == 1) != (answer == "y") {
			t.Errorf("%s: %d e-mails", answer, len(mails))
		}
	}
}

// TestSkills makes the model follow a skill that does not allow one of the tools.
func TestSkills(t *testing.T) {
	t.Parallel()
	want := "called activate_skill <nil>\nfollows the skill release-notes\ncalled read_skill_file <nil>\n" +
		"called tag PolicyError denied: This tool may not be called now: the skill release-notes lets only these be " +
		"called: list_changes, activate_skill, read_skill_file.\ncalled list_changes <nil>\nYou can export as CSV. " +
		"Invitations show the right time. (All changes: " +
		`["export as CSV","rename a helper","fix time zones in invitations"])` + "\n"
	if got := output(t, program(t, "skills")(t.TempDir())); got != want {
		t.Errorf("got %q; want %v", got, want)
	}
}

// TestMCP checks that one tool of a server waits for approval, and that one that only reads runs at once.
func TestMCP(t *testing.T) {
	t.Parallel()
	start := program(t, "mcp")
	for typed, want := range map[string]string{"y": "You have one note: The demo is at eleven.\n",
		"n": "You have no notes.\n"} {
		cmd := start(t.TempDir())
		cmd.Stdin = strings.NewReader(typed + "\n")
		const card = "Call add of the server notes\n{\"Text\":\"The demo is at eleven.\"}\n[y] "
		if got := output(t, cmd); got != card+want {
			t.Errorf("%s: %q", typed, got)
		}
	}
}

// TestProgramLengths limits the length of the programs, and checks that each names the script that answers it.
func TestProgramLengths(t *testing.T) {
	files, err := filepath.Glob("*/main.go")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	imports := regexp.MustCompile(`(_ ".*/scripts/cookbook/offline" // |"[^"]*/shared/countersign/offline")`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte("\n")); n > 60 || !imports.Match(text) {
			t.Errorf("%s has %d lines, or does not import the script", file, n)
		}
	}
}
