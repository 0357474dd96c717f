package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// try runs setup with the environment.
func try(t *testing.T, env map[string]string) (said string, ready bool) {
	t.Helper()
	code, out, errs := exec(t, env, "setup")
	if code > 1 || errs != "" {
		t.Fatalf("status %d: %s", code, errs)
	}
	return strings.TrimSuffix(out, "\n"), code == 0
}

func TestSetupFromNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	service := httptest.NewServer(fakegemini.New(nil))
	t.Cleanup(service.Close)
	env := map[string]string{"GOOGLE_GEMINI_BASE_URL": service.URL}

	if said, ready := try(t, env); ready ||
		!strings.HasPrefix(said, "Wrote config/.gemini.yaml without a key.\nNext: get a key at ") {
		t.Fatalf("without a configuration: %q", said)
	}
	info, err := os.Stat(config.FilePath)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file: %v, %v", info, err)
	}
	if said, ready := try(t, env); ready ||
		!strings.HasPrefix(said,
			"config/.gemini.yaml:5: apiKey is 21 characters, not shown; it needs a Gemini API key from ") ||
		!strings.Contains(said, "placeholder") || !strings.Contains(said, "with Gemini: get a key at ") ||
		!strings.Contains(said, "without: go run ./scripts/dev works with the offline demo model") {
		t.Fatalf("with the template: %q", said)
	}
	text, err := os.ReadFile(config.FilePath)
	if err != nil {
		t.Fatal(err)
	}
	filled := strings.Replace(string(text), "<your-gemini-api-key>", "AIzaCANARY", 1)
	if err := os.WriteFile(config.FilePath, []byte(filled), 0o600); err != nil {
		t.Fatal(err)
	}
	said, ready := try(t, env)
	if want := "Ready: the service accepts config/.gemini.yaml and knows the model " +
		"gemini-flash-latest.\nNext: go run ./scripts/dev"; !ready || said != want {
		t.Fatalf("got %q, want %q", said, want)
	}
	if text, err = os.ReadFile(config.FilePath); err != nil || string(text) != filled {
		t.Errorf("the user's file was changed: %q, %v", text, err)
	}
	if err := os.Chmod(config.FilePath, 0o644); err != nil {
		t.Fatal(err)
	}
	if said, ready := try(t, env); !ready ||
		!strings.HasPrefix(said,
			"Others on this machine can read config/.gemini.yaml: chmod 600 config/.gemini.yaml\nReady") {
		t.Errorf("with a file that others can read: %q", said)
	}
}

func TestSetupNotReady(t *testing.T) {
	refusing := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	away := httptest.NewServer(nil)
	away.Close()
	const badKey = `{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}`
	for name, c := range map[string]struct{ file, url, want string }{
		"malformed": {"apiKey: 'AIzaCANARY", "", ":1 is not YAML"},
		"no key": {"model: m-1", "", "GEMINI_API_KEY is not set; it needs a Gemini API key from " +
			"https://aistudio.google.com/apikey (or apiKey in config/.gemini.yaml)"},
		"key refused": {"apiKey: AIzaCANARY", refusing(400, badKey),
			"Gemini did not accept the key of this service.\nNext: check the key and the model in "},
		"unknown model": {"apiKey: AIzaCANARY\nmodel: m-1", refusing(404, "{}"), "Gemini does not know the model"},
		"offline":       {"apiKey: AIzaCANARY", away.URL, "Gemini could not be reached."},
		"another site": {"apiKey: AIzaCANARY", refusing(200, "<html>"),
			"The model's answer could not be read.\nNext: if GOOGLE_GEMINI_BASE_URL"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "g.yaml")
			if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			said, ready := try(t, map[string]string{"GEMINI_CONFIG": path, "GOOGLE_GEMINI_BASE_URL": c.url})
			if ready || !strings.Contains(said, c.want) || !strings.Contains(said, "\nNext: ") {
				t.Errorf("it said %q, want %q", said, c.want)
			}
			if strings.Contains(said, "CANARY") {
				t.Errorf("the key is in %q", said)
			}
		})
	}
}

// TestSetupWithEnvironment checks that no template is written if the environment has a key.
func TestSetupWithEnvironment(t *testing.T) {
	t.Chdir(t.TempDir())
	service := httptest.NewServer(fakegemini.New(nil))
	t.Cleanup(service.Close)
	said, ready := try(t, map[string]string{"GEMINI_API_KEY": "AIzaCANARY", "GOOGLE_GEMINI_BASE_URL": service.URL})
	if !ready || !strings.Contains(said, "accepts GEMINI_API_KEY and knows") {
		t.Errorf("it said %q", said)
	}
	if _, err := os.Stat("config"); !os.IsNotExist(err) {
		t.Errorf("setup wrote a file: %v", err)
	}
}

func TestSetupWithSymlink(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("config", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../elsewhere", config.FilePath); err != nil {
		t.Fatal(err)
	}
	said, ready := try(t, nil)
	if _, err := os.Stat("elsewhere"); ready || !os.IsNotExist(err) {
		t.Errorf("setup wrote through a link (%v): %q", err, said)
	}
}

func TestGitignoreOfSetup(t *testing.T) {
	ignored, err := os.ReadFile("../../.gitignore")
	if err != nil || !strings.Contains(string(ignored), "\n/"+config.FilePath+"\n") {
		t.Errorf("git does not ignore the key file: %v\n%s", err, ignored)
	}
}
