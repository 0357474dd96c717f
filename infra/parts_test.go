package infra_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "github.com/countersign-run/countersign/functions/actions"
	_ "github.com/countersign-run/countersign/functions/agui"
	_ "github.com/countersign-run/countersign/functions/allowlist"
	_ "github.com/countersign-run/countersign/functions/approvals-pending"
	_ "github.com/countersign-run/countersign/functions/approvals-resolve"
	_ "github.com/countersign-run/countersign/functions/audit"
	_ "github.com/countersign-run/countersign/functions/chat"
	_ "github.com/countersign-run/countersign/functions/chat-results"
	_ "github.com/countersign-run/countersign/functions/connections"
	_ "github.com/countersign-run/countersign/functions/files"
	_ "github.com/countersign-run/countersign/functions/gemini-agent"
	_ "github.com/countersign-run/countersign/functions/mcp"
	_ "github.com/countersign-run/countersign/functions/notify"
	_ "github.com/countersign-run/countersign/functions/passkeys"
	_ "github.com/countersign-run/countersign/functions/plans"
	_ "github.com/countersign-run/countersign/functions/resume"
	_ "github.com/countersign-run/countersign/functions/resume-plan"
	_ "github.com/countersign-run/countersign/functions/resume-terminal"
	_ "github.com/countersign-run/countersign/functions/run"
	_ "github.com/countersign-run/countersign/functions/runs"
	_ "github.com/countersign-run/countersign/functions/stream"
	_ "github.com/countersign-run/countersign/functions/sweep"
	_ "github.com/countersign-run/countersign/functions/terminal-attach"
	_ "github.com/countersign-run/countersign/functions/terminals"
	_ "github.com/countersign-run/countersign/functions/threads"
	_ "github.com/countersign-run/countersign/functions/ui"
	"github.com/countersign-run/countersign/infra"
	"github.com/countersign-run/countersign/shared/app"
)

// TestParts compares functions.json with the parts that make up the functions. With -update it writes them there. The
// function web has no parts.
func TestParts(t *testing.T) {
	made := map[string][]string{"web": {"site"}}
	for _, f := range app.Served() {
		parts, err := f.Parts()
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		made[f.Name] = parts
	}
	file := string(text(t, "functions.json"))
	for _, f := range list(t).Functions {
		if !slices.Equal(f.Parts, made[f.Name]) {
			if *update {
				file = withParts(t, file, f.Name, made[f.Name])
				continue
			}
			t.Errorf("%s: functions.json gives it the parts %v, it is made of %v; go test ./infra -run Parts -update "+
				"writes the file", f.Name, f.Parts, made[f.Name])
		}
	}
	if _, err := infra.Parse([]byte(file)); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("functions.json", []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// withParts returns the file with these parts of the function.
func withParts(t *testing.T, file, function string, parts []string) string {
	t.Helper()
	at := strings.Index(file, `{"name": "`+function+`",`)
	line := regexp.MustCompile(`"parts": \[[^\]]*\]`).FindStringIndex(file[max(at, 0):])
	if at < 0 || line == nil {
		t.Fatalf("functions.json has no parts of %s", function)
	}
	names, err := json.Marshal(parts)
	if err != nil {
		t.Fatal(err)
	}
	return file[:at+line[0]] + `"parts": ` + strings.ReplaceAll(string(names), ",", ", ") + file[at+line[1]:]
}
