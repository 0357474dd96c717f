// Package functions_test checks that the folders of functions/ match the routes of shared/api, and starts each function
// alone, as the cloud does.
package functions_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/freeport"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

func names() []string {
	var out []string
	for _, f := range api.Functions {
		out = append(out, f.Name)
	}
	out = append(out, "web") // the only function without an API route
	slices.Sort(out)
	return out
}

func TestFunctionFolders(t *testing.T) {
	dirs, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	registers := regexp.MustCompile(
		`functions\.HTTP\("([a-z-]+)",\s(?:\s*app\.Serve\(api\.(\w+), [A-Za-z.,\s]+\)|web\.Function\("(web)"\))\)`)
	kebab := regexp.MustCompile(`([a-z])([A-Z])`)
	var found []string
	for _, file := range dirs {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Dir(file)
		m := registers.FindSubmatch(src)
		if m == nil || string(m[1]) != folder ||
			strings.ToLower(kebab.ReplaceAllString(string(m[2])+string(m[3]), "$1-$2")) != folder {
			t.Errorf("%s does not register the function %s", file, folder)
		}
		if n := bytes.Count(src, []byte("\n")); n > 30 {
			t.Errorf("%s has %d lines: a function is its doc comment and its registration", file, n)
		}
		found = append(found, folder)
	}
	if slices.Sort(found); !slices.Equal(found, names()) {
		t.Errorf("folders %v, functions %v", found, names())
	}
}

// TestFunctionAlone starts each function as its own process under the functions framework.
func TestFunctionAlone(t *testing.T) {
	realpart.Long(t, "it builds the functions, and starts a process for each")
	bin := filepath.Join(t.TempDir(), "function")
	if out, err := exec.Command("go", "build", "-o", bin, "../scripts/function").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, f := range api.Functions {
		t.Run(f.Name, func(t *testing.T) {
			base := start(t, bin, f.Name)
			for _, r := range f.Routes {
				path := strings.NewReplacer("{runId}", "abcdefghijklmnop", "{threadId}", "abcdefghijklmnop",
					"{entryId}", "abcdefghijklmnop", "{hostId}", "abcdefghijklmnop", "{terminalId}", "abcdefghijklmnop",
					"{name}", "search", "{sessionId}", "abcdefghijklmnop", "{grantId}", "g1").Replace(r.Path)
				status, body := call(t, r.Method, base+path)
				want := http.StatusUnauthorized
				switch {
				case strings.HasSuffix(path, "/callback"):
					want = http.StatusConflict // authenticated by its state; no OAuth client is configured
				case strings.HasSuffix(path, "/socket"):
					want = http.StatusUpgradeRequired // authenticated by its first message
				case strings.HasPrefix(path, "/.well-known/oauth-"):
					want = http.StatusNotFound // no issuer of access tokens is configured
				case path == "/.well-known/jwks.json":
					want = http.StatusOK // anyone who has a receipt can verify it
				}
				if status != want || !json.Valid(body) {
					t.Errorf("%s %s: %d %s", r.Method, path, status, body)
				}
			}
			if status, body := call(t, "GET", base+"/health"); status != http.StatusOK ||
				!bytes.Contains(body, []byte(`"release":"`+release+`"`)) {
				t.Errorf("/health: %d %s", status, body)
			}
			if status, body := call(t, "GET", base+"/nothing/here"); status != http.StatusNotFound ||
				!json.Valid(body) {
				t.Errorf("/nothing/here: %d %s", status, body)
			}
		})
	}
	t.Run("web", func(t *testing.T) {
		base := start(t, bin, "web")
		for path, want := range map[string]int{"/": http.StatusOK, "/config.json": http.StatusServiceUnavailable,
			"/widget/gemini-chat.js": http.StatusOK, "/widget/automation.js": http.StatusOK,
			"/openapi.json": http.StatusOK, "/api/agent/run": http.StatusNotFound} {
			if status, body := call(t, "GET", base+path); status != want {
				t.Errorf("%s: %d %s; want status %v", path, status, body, want) // no server answers at the issuer's URL
			}
		}
	})
	t.Run("what nobody carries out is told at start", func(t *testing.T) { warnsAtStart(t, bin) })
	t.Run("a broken file of an agent stops it", func(t *testing.T) { brokenAgent(t, bin) })
	t.Run("a wrong setting stops it", func(t *testing.T) {
		cmd := exec.Command(bin)
		cmd.Env = append(environment(t, "run", "0"), "MAX_MODEL_CALLS=many")
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "MAX_MODEL_CALLS") {
			t.Errorf("%v: %s; want an error, out with “MAX_MODEL_CALLS”", err, out)
		}
	})
}

// brokenAgent starts functions with an agent file that has an unknown tool and a wrong limit. Both mistakes stop a
// function that advances runs. A function that only ends runs does not know the tools, so only the limit stops it.
func brokenAgent(t *testing.T, bin string) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "shop.agent.yaml"),
		[]byte("name: shop\ninstruction: Sell.\ntools:\n  - fly\nlimits:\n  maxOpen: -1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"run": "shop.agent.yaml:4: ", "resume": "shop.agent.yaml:4: ",
		"approvals-resolve": "shop.agent.yaml:4: ", "sweep": "AGENTS: shop.agent.yaml:6: "} {
		ctx, stop := context.WithTimeout(t.Context(), await.Most)
		defer stop()
		cmd := exec.CommandContext(ctx, bin)
		cmd.Env = append(environment(t, name, freeport.For(t)), "AGENTS="+dir)
		if out, err := cmd.CombinedOutput(); err == nil || ctx.Err() != nil ||
			!strings.Contains(string(out), want) || !strings.Contains(string(out), "shop.agent.yaml:6: ") {
			t.Errorf("%s: %v: %s; want an error, no error from ctx.Err, out with %q, out with “shop.agent.yaml:6: ”",
				name, err, out, want)
		}
	}
}

// warnsAtStart starts a function with an action that has no handler, and checks that it logs one warning before its
// first request.
func warnsAtStart(t *testing.T, bin string) {
	dir, port := t.TempDir(), freeport.For(t)
	if err := os.WriteFile(filepath.Join(dir, "plugin.yaml"), []byte("name: shop\nactions: [submitRating]\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), await.Most)
	defer stop()
	cmd := exec.CommandContext(ctx, bin)
	cmd.Env = append(environment(t, "actions", port), "ACTIONS="+dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	warnings, all, asked := 0, "", false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		all += lines.Text() + "\n"
		if !strings.Contains(lines.Text(), `"action":"submitRating"`) {
			continue
		}
		if warnings++; !asked {
			asked = true
			go func() { // the first request opens the rest of the function; then the process can end
				defer stop()
				for wait.For(ctx, 20*time.Millisecond) == nil {
					if res, err := http.Get("http://127.0.0.1:" + port + "/health"); err == nil {
						_ = res.Body.Close()
						return
					}
				}
			}()
		}
	}
	_ = cmd.Wait() // it was killed
	if warnings != 1 || !strings.Contains(all, `"severity":"WARNING"`) {
		t.Errorf("%d warnings, want one before the first request:\n%s", warnings, all)
	}
	released(t, all)
}

// release is the name of the build, as a deployment sets it.
const release = "v1.2.3-test"

func environment(t *testing.T, name, port string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "FUNCTION_TARGET=" + name, "PORT=" + port,
		"STORE=embedded", "DATA_DIR=" + t.TempDir(), "GEMINI_API_KEY=not-a-real-key-but-long-enough", "LOG_LEVEL=info",
		"RELEASE=" + release,
		"AUTH_ISSUER=http://127.0.0.1:9/issuer", "AUTH_AUDIENCE=test", "WEB_CLIENT_ID=test",
		"PUBLIC_URL=http://127.0.0.1:" + port,
		"PUSH_AUDIENCE=https://resume.example", "PUSH_SERVICE_ACCOUNT=push@test.iam.gserviceaccount.com"}
}

// released checks that each log line names the release.
func released(t *testing.T, log string) {
	t.Helper()
	lines := 0
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, "{") {
			continue // the framework's own
		}
		lines++
		var l struct {
			Labels map[string]string `json:"logging.googleapis.com/labels"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Labels["release"] != release {
			t.Errorf("a log line does not name the release (%v): %s", err, line)
		}
	}
	if lines == 0 {
		t.Error("nothing was logged")
	}
}

func start(t *testing.T, bin, name string) (base string) {
	port := freeport.For(t)
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, bin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = environment(t, name, port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was killed
		released(t, out.String())
		if t.Failed() {
			t.Log(out.String())
		}
	})
	base = "http://127.0.0.1:" + port
	await.That(t, name+" answers", func() bool {
		res, err := http.Get(base + "/health")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		if got := res.Header.Get("Strict-Transport-Security"); got != "" {
			t.Errorf("over plain http Strict-Transport-Security is %q", got)
		}
		return true
	})
	return base
}

// call sends a request as Cloud Run forwards it for a browser on TLS, and checks that every answer has
// Strict-Transport-Security.
func call(t *testing.T, method, url string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Forwarded-Proto", "https")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got := res.Header.Get("Strict-Transport-Security"); got != "max-age=63072000" {
		t.Errorf("%s %s: Strict-Transport-Security is %q", method, url, got)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, b.Bytes()
}

// TestFunctionLinksClients looks for client libraries among the packages that each function is built from.
func TestFunctionLinksClients(t *testing.T) {
	clients := map[string]string{"cloud.google.com/go/pubsub/v2/apiv1": "pubsub", "google.golang.org/genai": "gemini",
		"google.golang.org/api/gmail/v1":                                  "tools",
		"cloud.google.com/go/kms/apiv1":                                   "keys",
		"golang.org/x/crypto/ssh":                                         "ssh",
		"codeberg.org/readeck/go-readability/v2":                          "fetch",
		"github.com/google/go-github/v92/github":                          "repositories",
		"google.golang.org/api/storage/v1":                                "files",
		"github.com/go-webauthn/webauthn/protocol":                        "passkeys",
		"modernc.org/sqlite":                                              "embedded store",
		"github.com/countersign-run/countersign/shared/tools/action":      "actions",
		"github.com/countersign-run/countersign/shared/config/agentfiles": "agents"}
	acting := "actions agents fetch files gemini keys pubsub tools"
	want := map[string]string{"run": acting, "stream": acting, "resume": acting, "sweep": "agents files keys pubsub",
		"approvals-resolve": "actions agents keys pubsub repositories tools",
		"runs":              "actions agents files keys pubsub tools",
		"files":             "files keys",
		"approvals-pending": "", "threads": "", "audit": "", "allowlist": "", "connections": "keys tools",
		"passkeys":     "keys passkeys",
		"chat":         "actions agents files gemini keys pubsub",
		"chat-results": "actions agents files gemini keys pubsub",
		"gemini-agent": "actions agents gemini pubsub tools",
		"actions":      "actions agents keys pubsub", "terminals": "keys ssh", "terminal-attach": "keys ssh", "web": "",
		"notify":          "",
		"mcp":             acting,
		"agui":            "actions agents fetch files gemini keys pubsub repositories tools",
		"ui":              "actions agents fetch files gemini keys pubsub repositories tools",
		"plans":           "actions agents keys pubsub repositories tools",
		"resume-plan":     "actions agents fetch files gemini keys pubsub repositories tools",
		"resume-terminal": "actions agents fetch files gemini keys pubsub ssh tools"}
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Deps " "}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		name := filepath.Base(f[0])
		if name == "functions" {
			continue
		}
		var linked []string
		for _, dep := range f[1:] {
			if c := clients[dep]; c != "" {
				linked = append(linked, c)
			}
		}
		slices.Sort(linked)
		if got := strings.Join(linked, " "); got != want[name] {
			t.Errorf("%s links the clients %q, want %q", name, got, want[name])
		}
	}
}
