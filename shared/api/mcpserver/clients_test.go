package mcpserver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/emulate"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/mcpservers"
)

// TestInspector lists the tools with the protocol's inspector, and requests an e-mail, which waits.
func TestInspector(t *testing.T) {
	inspector := mcpservers.Inspector(t, emulate.Node(t))
	w := testkit.Open(t, testkit.Options{})
	token := give(t, w)
	inspect := func(args ...string) (out struct {
		Tools             []struct{ Name string }
		StructuredContent answer
	}) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), inspector[0], slices.Concat(inspector[1:], []string{w.Base + "/mcp",
			"--transport", "http", "--header", "Authorization: Bearer " + token}, args)...)
		cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "HOME="+t.TempDir())
		said, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(said, &out)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		return out
	}
	listed := inspect("--method", "tools/list")
	if !slices.Contains(listed.Tools, struct{ Name string }{"gmail_send"}) {
		t.Errorf("it lists %v", listed.Tools)
	}
	asked := inspect("--method", "tools/call", "--tool-name", "gmail_send", "--tool-arg", `to=["bob@example.com"]`,
		"--tool-arg", "subject=s", "--tool-arg", "body=b")
	if asked.StructuredContent.Status != "awaiting_confirmation" {
		t.Errorf("%+v; want asked.StructuredContent.Status “awaiting_confirmation”", asked)
	}
}

// TestCodingAgent configures a coding agent with the URL and a token, as in the README. Its model requests an e-mail.
// The agent runs every tool without asking, but the e-mail still waits for the user.
func TestCodingAgent(t *testing.T) {
	agent := mcpservers.GeminiCLI(t)
	w := testkit.Open(t, testkit.Options{})
	model := httptest.NewServer(fakegemini.New(func(r fakegemini.Request) fakegemini.Turn {
		sends := slices.IndexFunc(r.Tools, func(d fakegemini.Declaration) bool {
			return strings.HasSuffix(d.Name, "gmail_send")
		})
		if answers := r.Responses(); len(answers) > 0 {
			return fakegemini.Turn{Text: "It answered: " + string(answers[0].Response)}
		} else if sends < 0 {
			return fakegemini.Turn{Text: "There is no tool that sends mail."}
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: r.Tools[sends].Name, Args: map[string]any{
			"to": []string{"bob@example.com"}, "subject": "Lunch", "body": "At noon."}}}}
	}))
	t.Cleanup(model.Close)
	home := t.TempDir()
	settings, err := json.Marshal(map[string]any{
		"mcpServers": map[string]any{"countersign": map[string]any{"httpUrl": w.Base + "/mcp",
			"headers": map[string]string{"Authorization": "Bearer " + give(t, w)}}},
		"security":  map[string]any{"auth": map[string]string{"selectedType": "gemini-api-key"}},
		"privacy":   map[string]bool{"usageStatisticsEnabled": false},
		"telemetry": map[string]bool{"enabled": false}})
	if err == nil {
		err = os.Mkdir(filepath.Join(home, ".gemini"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(home, ".gemini", "settings.json"), settings, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), agent[0], append(slices.Clone(agent[1:]), "--prompt",
		"tell bob that lunch is at noon", "--model", "gemini-3-flash-preview", "--yolo", "--skip-trust")...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+t.TempDir(), "GEMINI_API_KEY=x",
		"GOOGLE_GEMINI_BASE_URL="+model.URL)
	said, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(said), "gmail_send waits for the user's yes at "+w.Base) {
		t.Fatalf("%v\n%s", err, said)
	}
	pending, err := w.Call(t.Context(), "ana", "GET", "/api/agent/approvals/pending", "")
	if err != nil || len(pending.Approvals) != 1 || len(w.Google.Messages()) != 0 {
		t.Fatalf("%v, %s, %d e-mails", err, pending.Body, len(w.Google.Messages()))
	}
	a, err := w.Resolve(t.Context(), "ana", pending.Approvals[0], "approve_once")
	if err == nil {
		_, err = w.Deliver(t.Context())
	}
	if err != nil || a.HTTP != http.StatusOK || len(w.Google.Messages()) != 1 {
		t.Errorf("%v, %d %s, %d e-mails", err, a.HTTP, a.Body, len(w.Google.Messages()))
	}
}
