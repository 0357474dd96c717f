package functions_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

// BenchmarkStart measures the cold start of each function's binary as it is deployed, over the Firestore emulator: its
// size, what the initialisation of its packages takes, and the time from the start of the process to the answer of its
// first request: to /health, and to one that reads the store. Each time is the minimum of its iterations, which depends
// on the binary and least on the machine's other load.
//
//	go test ./functions -run '^$' -bench Start -benchtime 5x
func BenchmarkStart(b *testing.B) {
	c := newCloud(b)
	bins := buildAlone(b)
	for _, f := range api.Functions {
		b.Run(f.Name, func(b *testing.B) {
			bin := filepath.Join(bins, f.Name)
			var health, first, inits []float64
			for b.Loop() {
				answered, trace := c.start(b, bin, f.Name, "GET", "/health", "", http.StatusOK)
				health, inits = append(health, answered), append(inits, initTime(b, trace))
				r := firstRequests[f.Name]
				answered, _ = c.start(b, bin, f.Name, r.method, r.path, r.body, r.status)
				first = append(first, answered)
			}
			info, err := os.Stat(bin)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(0, "ns/op") // an iteration is two starts, which are reported below
			b.ReportMetric(float64(info.Size())/1e6, "MB")
			b.ReportMetric(slices.Min(inits), "ms-in-init")
			b.ReportMetric(slices.Min(health), "ms-to-health")
			b.ReportMetric(slices.Min(first), "ms-to-first-request")
		})
	}
}

// firstRequests holds a request for each function that it answers from the store.
var firstRequests = map[string]struct {
	method, path, body string
	status             int
}{
	"run":    {"POST", "/api/agent/run", `{"prompt":"hello"}`, http.StatusOK},
	"stream": {"POST", "/api/agent/run/stream", `{"prompt":"hello"}`, http.StatusOK},
	"resume": {"POST", "/api/agent/resume",
		`{"message":{"data":"eyJydW5JZCI6ImFiY2RlZmdoaWprbG1ub3AifQ==","messageId":"1"},"subscription":"s"}`,
		http.StatusNoContent},
	"sweep":             {"POST", "/api/agent/sweep", "", http.StatusOK},
	"approvals-pending": {"GET", "/api/agent/approvals/pending", "", http.StatusOK},
	"approvals-resolve": {"POST", "/api/agent/approvals/resolve",
		`{"approvalId":"` + run.ApprovalID("abcdefghijklmnop", 1) + `","decision":"reject"}`, http.StatusNotFound},
	"runs":         {"GET", "/api/agent/runs/abcdefghijklmnop", "", http.StatusNotFound},
	"threads":      {"GET", "/api/agent/threads", "", http.StatusOK},
	"audit":        {"GET", "/api/agent/audit", "", http.StatusOK},
	"allowlist":    {"GET", "/api/agent/allowlist", "", http.StatusOK},
	"chat":         {"POST", "/api/agent/chat", `{"message":"hello"}`, http.StatusOK},
	"chat-results": {"POST", "/api/agent/chat/results", `{"results":[],"history":[]}`, http.StatusBadRequest},
	"actions":      {"POST", "/api/agent/actions/search", `{}`, http.StatusNotFound},
	"connections":  {"GET", "/api/agent/connections", "", http.StatusOK},
}

// buildAlone builds each function as the cloud's buildpack does: as its own main package, which imports the function's
// folder and starts the functions framework.
func buildAlone(tb testing.TB) (dir string) {
	dir = tb.TempDir()
	root, err := filepath.Abs("..")
	if err != nil {
		tb.Fatal(err)
	}
	replace := map[string]string{}
	args := []string{"build", "-trimpath", "-ldflags=-s -w", "-overlay", filepath.Join(dir, "overlay.json"), "-o",
		dir + "/"}
	for _, name := range names() {
		src := filepath.Join(dir, name+".go")
		text := fmt.Sprintf(`package main

import (
	"log"
	"os"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"

	_ "github.com/countersign-run/countersign/functions/%s"
)

func main() { log.Fatal(funcframework.StartHostPort("127.0.0.1", os.Getenv("PORT"))) }
`, name)
		if err := os.WriteFile(src, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
		replace[filepath.Join(root, "functions", "alone", name, "main.go")] = src
		args = append(args, "./functions/alone/"+name)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// cloud is the environment of a deployed function.
type cloud struct {
	url, firestore string
	issuer         *issuer.Issuer
}

const (
	pusher       = "push@test.iam.gserviceaccount.com"
	pushAudience = "https://resume.example"
)

func newCloud(tb testing.TB) *cloud {
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	tb.Cleanup(srv.Close)
	key, err := issuer.NewKey()
	if err != nil {
		tb.Fatal(err)
	}
	iss, err := issuer.New(srv.URL+"/issuer", key, time.Now)
	if err != nil {
		tb.Fatal(err)
	}
	mux.Handle("/issuer/", iss)
	mux.Handle("/gemini/", http.StripPrefix("/gemini",
		fakegemini.New(func(fakegemini.Request) fakegemini.Turn { return fakegemini.Turn{Text: "Hello."} })))
	return &cloud{srv.URL, emulators.Firestore(tb), iss}
}

// start starts a function, sends it one request as soon as it listens, and returns the milliseconds from the start of
// the process to the end of the answer, and the trace of its packages' initialisation.
func (c *cloud) start(tb testing.TB, bin, name, method, path, body string, status int) (ms float64, trace string) {
	port := freePort(tb)
	var out bytes.Buffer
	cmd := exec.Command(bin)
	cmd.Env = []string{"FUNCTION_TARGET=" + name, "PORT=" + port, "GODEBUG=inittrace=1", "LOG_LEVEL=warn",
		"STORE=firestore", "GOOGLE_CLOUD_PROJECT=demo-start", "FIRESTORE_EMULATOR_HOST=" + c.firestore,
		"PUBSUB_EMULATOR_HOST=127.0.0.1:9",
		"GEMINI_API_KEY=not-a-real-key-but-long-enough", "GEMINI_MODEL=fake",
		"GOOGLE_GEMINI_BASE_URL=" + c.url + "/gemini",
		"AUTH_ISSUER=" + c.url + "/issuer", "AUTH_AUDIENCE=test", "PUSH_ISSUER=" + c.url + "/issuer",
		"PUSH_AUDIENCE=" + pushAudience,
		"PUSH_SERVICE_ACCOUNT=" + pusher, "PUBLIC_URL=http://127.0.0.1:" + port}
	cmd.Stdout, cmd.Stderr = &out, &out
	req := c.request(tb, name, method, "http://127.0.0.1:"+port+path, body)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		trace = out.String()
	}()
	for !listens("127.0.0.1:" + port) {
		if time.Since(began) > 20*time.Second {
			tb.Fatalf("%s does not listen", name)
		}
		time.Sleep(time.Millisecond)
	}
	res, err := client.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		tb.Fatalf("%s %s: %d %s, %v", method, path, res.StatusCode, answer, err)
	}
	return float64(time.Since(began).Microseconds()) / 1e3, ""
}

func listens(addr string) bool {
	conn, err := net.Dial("tcp", addr)
	return err == nil && conn.Close() == nil
}

func (c *cloud) request(tb testing.TB, name, method, url, body string) *http.Request {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	token, err := c.issuer.Token("ana", "ana@example.com", "test", time.Hour)
	if name == "resume" || name == "sweep" {
		token, err = c.issuer.PushToken(pusher, pushAudience)
	}
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	return req
}

// initTime adds up the milliseconds of a trace's lines, such as "init net/http @1.2 ms, 0.034 ms clock, 7000 bytes, 12
// allocs".
func initTime(tb testing.TB, trace string) (sum float64) {
	lines := 0
	for s := bufio.NewScanner(strings.NewReader(trace)); s.Scan(); {
		var pkg string
		var at, took float64
		if n, _ := fmt.Sscanf(s.Text(), "init %s @%g ms, %g ms clock", &pkg, &at, &took); n == 3 {
			sum, lines = sum+took, lines+1
		}
	}
	if lines == 0 {
		tb.Fatalf("no trace of the initialisation: %s", trace)
	}
	return sum
}
