package app_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// askWith starts a run on ana's terminal with a file.
func (h *onHost) askWith(name, content string) testkit.Answer {
	h.t.Helper()
	a, err := h.as("ana")(h.t.Context(), http.MethodPost, "/api/agent/run", map[string]any{"prompt": "Transfer it.",
		"terminalId": h.terminal, "attachments": []map[string]string{{"name": name,
			"data": base64.StdEncoding.EncodeToString([]byte(content))}}})
	if err != nil || a.HTTP != http.StatusOK {
		h.t.Fatalf("%v %d %s; want a.HTTP %v", err, a.HTTP, a.Body, http.StatusOK)
	}
	return a
}

// calls makes the model call a tool with each of the arguments, one after the other. It returns the responses so far.
func (h *onHost) calls(tool string, all ...map[string]any) (responses func() []string) {
	var got []string
	h.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		got = nil
		for _, c := range r.Contents {
			for _, p := range c.Parts {
				if p.FunctionResponse != nil {
					got = append(got, string(p.FunctionResponse.Response))
				}
			}
		}
		if len(got) < len(all) {
			all[len(got)]["reasoning"] = "To have it there."
			return fakegemini.Turn{Calls: []fakegemini.Call{{Name: tool, Args: all[len(got)]}}}
		}
		return fakegemini.Turn{Text: "Done."}
	})
	return func() []string { return got }
}

func sumOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// isFile checks a file on the host, and its permissions.
func (h *onHost) isFile(name, content string, mode os.FileMode) {
	h.t.Helper()
	path := filepath.Join(h.srv.Home, name)
	text, err := os.ReadFile(path)
	if err != nil || string(text) != content {
		h.t.Errorf("%s is %q, %v; want %q", name, text, err, content)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
		h.t.Errorf("%s is %v, %v; want %v", name, info.Mode(), err, mode)
	}
}

// shows checks that the answer's only card has the texts.
func (h *onHost) shows(a testkit.Answer, texts ...string) {
	h.t.Helper()
	if len(a.Approvals) != 1 {
		h.t.Fatalf("%d cards: %s", len(a.Approvals), a.Body)
	}
	for _, text := range texts {
		if !strings.Contains(string(a.Body), text) {
			h.t.Errorf("the card lacks %q: %s", text, a.Body)
		}
	}
}

// TestTerminalUpload puts an attached file on a host. The card shows the file and the place, with their hashes. A file
// is replaced only if its card says so, and keeps its permissions.
func TestTerminalUpload(t *testing.T) {
	h := onTerminal(t, nil)
	const content = "listen 80;\n\n"
	responses := h.calls("upload_file", map[string]any{"file": "site.conf", "path": "my site.conf"},
		map[string]any{"file": "site.conf", "path": "old.conf"},
		map[string]any{"file": "site.conf", "path": "old.conf", "overwrite": true},
		map[string]any{"file": "other.conf", "path": "x"}, map[string]any{"file": "site.conf", "path": "no/where"},
		map[string]any{"file": "site.conf", "path": "../x"})
	if err := os.WriteFile(filepath.Join(h.srv.Home, "old.conf"), []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	asked := h.askWith("site.conf", content)
	h.shows(asked, "site.conf", "12 bytes", sumOf(content), h.srv.Home+"/my site.conf", `"Nothing"`)
	if _, err := os.Stat(filepath.Join(h.srv.Home, "my site.conf")); err == nil {
		t.Fatal("it was there before the yes")
	}
	asked = h.approve(asked)
	h.isFile("my site.conf", content, 0o600)
	h.shows(asked, "3 bytes, SHA-256 "+sumOf("old"), `"confirm":"web"`)
	if got := responses(); len(got) != 2 || !strings.Contains(got[1], "is a file of 3 bytes") {
		t.Errorf("the model read %q", got)
	}
	asked = h.approve(asked)
	h.isFile("old.conf", content, 0o640)
	got := responses()
	for i, want := range []string{sumOf(content), "is a file of 3 bytes", sumOf(content), "attached no file",
		"folder of this path does not exist", "path: "} {
		if i >= len(got) || !strings.Contains(got[i], want) {
			t.Errorf("the model read %q", got)
		}
	}
	if asked.Status != "completed" {
		t.Errorf("%s; want asked.Status “completed”", asked.Body)
	}
}

// TestTerminalUploadOfLargeFile puts a file on a host that was uploaded before its prompt.
func TestTerminalUploadOfLargeFile(t *testing.T) {
	h := onTerminal(t, nil)
	content := strings.Repeat("listen 80;\n", 200_000)
	body, kind := form(t, "file", "site.conf", []byte(content))
	up, err := h.Call(t.Context(), "ana", http.MethodPost, "/api/agent/files", body, "Content-Type", kind)
	var file uploaded
	if err := errors.Join(err, json.Unmarshal(up.Body, &file)); err != nil || file.FileID == "" {
		t.Fatalf("%v %s; want a fileId", err, up.Body)
	}
	h.calls("upload_file", map[string]any{"file": "site.conf", "path": "large.conf"})
	asked, err := h.as("ana")(t.Context(), http.MethodPost, "/api/agent/run", map[string]any{"prompt": "Transfer it.",
		"terminalId": h.terminal, "attachments": []map[string]string{{"fileId": file.FileID}}})
	if err != nil || asked.HTTP != http.StatusOK {
		t.Fatalf("%v %d %s; want %d", err, asked.HTTP, asked.Body, http.StatusOK)
	}
	h.shows(asked, "site.conf", sumOf(content))
	h.approve(asked)
	h.isFile("large.conf", content, 0o600)
}

// TestTerminalUploadOverChangedFile changes the host between card and yes: nothing is written.
func TestTerminalUploadOverChangedFile(t *testing.T) {
	for name, c := range map[string]struct {
		there  string
		change func(path string) error
	}{
		"another file": {"old", func(path string) error { return os.WriteFile(path, []byte("newer"), 0o600) }},
		"gone":         {"old", os.Remove},
		"new":          {"", func(path string) error { return os.WriteFile(path, []byte("newer"), 0o600) }},
		"a link": {"", func(path string) error {
			return os.Symlink(filepath.Join(filepath.Dir(path), "elsewhere"), path)
		}},
		"a link to the same": {"old", func(path string) error {
			return errors.Join(os.Rename(path, path+"2"), os.Symlink(path+"2", path))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := onTerminal(t, nil)
			path := filepath.Join(h.srv.Home, "x")
			if c.there != "" {
				if err := os.WriteFile(path, []byte(c.there), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			h.calls("upload_file", map[string]any{"file": "a", "path": "x", "overwrite": true})
			asked := h.askWith("a", "mine")
			h.shows(asked)
			if err := c.change(path); err != nil {
				t.Fatal(err)
			}
			got := h.approve(asked)
			if !strings.Contains(string(got.Body), "not the one that was shown") &&
				!strings.Contains(string(got.Body), "or to nothing") {
				t.Errorf("%s", got.Body)
			}
			for _, name := range []string{"x", "x2", "elsewhere"} {
				if text, err := os.ReadFile(filepath.Join(h.srv.Home, name)); err == nil && string(text) == "mine" {
					t.Errorf("%s was written", name)
				}
			}
		})
	}
}

// TestTerminalDownload takes a file from a host. The bytes that the card showed are kept for the user alone: also of a
// file that grows meanwhile, and not of one that changes. A folder that may be read needs no card, unless a link leads
// out of it.
func TestTerminalDownload(t *testing.T) {
	logs := t.TempDir()
	h := onTerminal(t, map[string]any{"autoRun": "read_only", "readPaths": []string{logs}})
	const content = "\x00\xffCANARY\n\n"
	for _, path := range []string{logs + "/log", h.srv.Home + "/own", h.srv.Home + "/changes"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(h.srv.Home+"/own", logs+"/link"); err != nil {
		t.Fatal(err)
	}
	responses := h.calls("download_file", map[string]any{"path": logs + "/log"},
		map[string]any{"path": logs + "/link"}, map[string]any{"path": "changes"}, map[string]any{"path": "none"},
		map[string]any{"path": "/dev/null"})
	asked := h.askOn("Get it.")
	h.shows(asked, "10 bytes", sumOf(content), h.srv.Home+"/own")
	grown, err := os.OpenFile(h.srv.Home+"/own", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := grown.WriteString("more"); err != nil || grown.Close() != nil {
		t.Fatal(err)
	}
	asked = h.approve(asked)
	if err := os.WriteFile(h.srv.Home+"/changes", []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := h.approve(asked)
	for i, want := range []string{sumOf(content), sumOf(content), "not the one that was shown", "has no file",
		"leads to a pipe"} {
		if all := responses(); i >= len(all) || !strings.Contains(all[i], want) || strings.Contains(all[i], "CANARY") {
			t.Errorf("the model read %q", all)
		}
	}
	var v struct {
		Actions []struct {
			ActionID string
			Step     struct {
				File struct {
					Name string
					Kept bool
				}
			}
		}
	}
	if err := json.Unmarshal(got.Body, &v); err != nil || len(v.Actions) != 5 {
		t.Fatalf("%v %s; want len(v.Actions) 5", err, got.Body)
	}
	for i, a := range v.Actions[:2] {
		path := "/api/agent/runs/" + got.RunID + "/output/" + a.ActionID
		if kept := h.call("GET", path, ""); string(kept.Body) != content || !a.Step.File.Kept {
			t.Errorf("download %d is %d %q", i, kept.HTTP, kept.Body)
		}
		if other, err := h.as("eve")(t.Context(), "GET", path, nil); err != nil || other.HTTP != http.StatusNotFound {
			t.Errorf("another user got %d %v", other.HTTP, err)
		}
	}
}
