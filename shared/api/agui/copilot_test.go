package agui_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/browsertest"
	"github.com/countersign-run/countersign/shared/testkit/chatclients"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// TestCopilotKit runs pages with the README's code for CopilotKit in Chromium (testdata/copilot.mjs,
// testdata/browse.mjs).
func TestCopilotKit(t *testing.T) {
	core, ui := copilotLines(t)
	other := strings.NewReplacer("CopilotChat, ", "", "<CopilotChat />", "<Connected><CopilotChat /></Connected>")
	ui += other.Replace(core)
	for name, code := range map[string]string{"react-core": core, "react-ui": ui} {
		t.Run(name, func(t *testing.T) {
			browser := browsertest.New(t)
			page := httptest.NewServer(http.FileServer(http.Dir(copilotPage(t, code))))
			defer page.Close()
			w := chatclients.Open(t, "ALLOWED_ORIGINS="+page.URL)
			w.SetModel(obliging)
			env := []string{"AGUI=" + w.Base + "/api/agent/agui"}
			for name, uid := range map[string]string{"ANA": "ana", "EVE": "eve"} {
				token, err := w.SignIn(t.Context(), uid)
				if err != nil {
					t.Fatal(err)
				}
				env = append(env, name+"="+token)
			}
			browser.Run("testdata/browse.mjs", page.URL, nil, env...)
			sent(t, w, 5)
		})
	}
}

// copilotLines returns the two code blocks for CopilotKit in the API's README.
func copilotLines(t *testing.T) (core, ui string) {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n### CopilotKit\n")
	blocks := regexp.MustCompile(`(?:\n {4,}import .*(?:\n {4}.*|\n)*)+`).FindAllString(section, -1)
	if len(blocks) != 2 {
		t.Fatalf("README has %q", blocks)
	}
	return blocks[0], blocks[1]
}

// copilotPage builds a page from the code, and returns its folder.
func copilotPage(t *testing.T, code string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"chat.jsx": code,
		"index.html": `<!doctype html><title>A chat</title><link rel="icon" href="data:,"><link rel="stylesheet" ` +
			`href="page.css"><div id="root"></div><script type="module" src="page.js"></script>`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	chatclients.Bundle(t, "testdata/copilot.mjs", filepath.Join(dir, "page.js"),
		"--alias:readme="+filepath.Join(dir, "chat.jsx"), // stub out syntax highlighting and diagrams
		"--external:mermaid", "--external:@shikijs/langs/*", "--external:@shikijs/themes/*")
	return dir
}

// obliging is a model that does what the user asks, and then reports the result.
func obliging(r fakegemini.Request) (turn fakegemini.Turn) {
	if len(r.Responses()) > 0 {
		return fakegemini.Turn{Text: "That is what came of it."}
	}
	if strings.Contains(r.User(), "what colour") && strings.Contains(r.System, `"value":"red"`) {
		return fakegemini.Turn{Text: "Red. That is what came of it."}
	}
	for _, of := range []struct {
		words string
		call  fakegemini.Call
	}{
		{"paint it red", paints("red")},
		{"mail bob", fakegemini.Call{Name: "gmail_send", Args: testkit.Mail("bob@example.com", "s", "b")}},
		{"and eve", fakegemini.Call{Name: "gmail_send", Args: testkit.Mail("eve@example.com", "s", "b")}},
	} {
		if strings.Contains(r.User(), of.words) {
			turn.Calls = append(turn.Calls, of.call)
		}
	}
	return turn
}
