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
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/freeport"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

// BenchmarkStart measures the cold start of each function's deployed binary over the Firestore emulator: its size, the
// time to initialise its packages, and the time from the start of the process to the first answer, to /health and to a
// request that reads the store. Times are medians of the iterations. It also reports the minimum and the processor time
// of the first request's process, which depend least on other load. If taskset is installed, the process is pinned to
// the last core, and this program can be pinned to the first:
//
//	taskset -c 0 go test ./functions -run '^$' -bench Start -benchtime 15x
func BenchmarkStart(b *testing.B) {
	c := newCloud(b)
	for _, f := range api.Functions {
		b.Run(f.Name, func(b *testing.B) {
			bin := filepath.Join(buildAlone(b, f.Name), f.Name)
			var health, first, used, inits []float64
			for b.Loop() {
				traced := c.start(b, bin, f.Name, "GET", "/health", "", http.StatusOK, "GODEBUG=inittrace=1")
				inits = append(inits, initTime(b, traced.output))
				health = append(health, c.start(b, bin, f.Name, "GET", "/health", "", http.StatusOK).ms)
				r := firstRequests[f.Name]
				began := c.start(b, bin, f.Name, r.method, r.path, r.body, r.status)
				first, used = append(first, began.ms), append(used, began.cpu)
			}
			info, err := os.Stat(bin)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(0, "ns/op") // an iteration is three starts, reported below
			b.ReportMetric(float64(info.Size())/1e6, "MB")
			b.ReportMetric(median(inits), "ms-in-init")
			b.ReportMetric(median(health), "ms-to-health")
			b.ReportMetric(median(first), "ms-to-first-request")
			b.ReportMetric(slices.Min(first), "ms-at-least")
			b.ReportMetric(median(used), "ms-of-cpu")
		})
	}
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// firstRequests holds a request for each function that it answers from the store. A terminal's socket is the exception:
// its token comes in the first message.
var firstRequests = map[string]struct {
	method, path, body string
	status             int
}{
	"run":    {"POST", "/api/agent/run", `{"prompt":"hello"}`, http.StatusOK},
	"stream": {"POST", "/api/agent/run/stream", `{"prompt":"hello"}`, http.StatusOK},
	"ui":     {"GET", "/api/agent/ui/chat/stream", "", http.StatusNoContent},
	"agui": {"POST", "/api/agent/agui", `{"threadId":"t","runId":"r","messages":[],"tools":[],"context":[]}`,
		http.StatusOK},
	"resume":          {"POST", "/api/agent/resume", aMessage, http.StatusNoContent},
	"resume-plan":     {"POST", "/api/agent/resume-plan", aMessage, http.StatusNoContent},
	"resume-terminal": {"POST", "/api/agent/resume-terminal", aMessage, http.StatusNoContent},
	// not an event, so it is dropped
	"notify":            {"POST", "/api/agent/notify/crm", aMessage, http.StatusNoContent},
	"sweep":             {"POST", "/api/agent/sweep", "", http.StatusOK},
	"approvals-pending": {"GET", "/api/agent/approvals/pending", "", http.StatusOK},
	"approvals-resolve": {"POST", "/api/agent/approvals/resolve",
		`{"approvalId":"` + run.ApprovalID("abcdefghijklmnop", 1) + `","decision":"reject"}`, http.StatusNotFound},
	"runs":      {"GET", "/api/agent/runs/abcdefghijklmnop", "", http.StatusNotFound},
	"plans":     {"GET", "/api/agent/plans", "", http.StatusOK},
	"files":     {"POST", "/api/agent/files", "x", http.StatusUnsupportedMediaType},
	"threads":   {"GET", "/api/agent/threads", "", http.StatusOK},
	"audit":     {"GET", "/api/agent/audit", "", http.StatusOK},
	"allowlist": {"GET", "/api/agent/allowlist", "", http.StatusOK},
	"passkeys":  {"GET", "/api/agent/passkeys", "", http.StatusOK},
	"mcp":       {"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, http.StatusUnauthorized},
	"chat":      {"POST", "/api/agent/chat", `{"message":"hello"}`, http.StatusOK},
	"gemini-agent": {"POST", "/api/gemini/agent", `{"history":[],"terminalId":"terminal-00000001"}`,
		http.StatusBadRequest},
	"chat-results": {"POST", "/api/agent/chat/results", `{"results":[],"history":[]}`, http.StatusBadRequest},
	"actions":      {"POST", "/api/agent/actions/search", `{}`, http.StatusNotFound},
	"connections":  {"GET", "/api/agent/connections", "", http.StatusOK},
	"terminals":    {"GET", "/api/agent/terminals", "", http.StatusOK},
	"terminal-attach": {"GET", "/api/agent/terminals/terminal-00000001/socket", "",
		http.StatusUpgradeRequired},
}

// aMessage is a message about a run that does not exist.
const aMessage = `{"message":{"data":"eyJydW5JZCI6ImFiY2RlZmdoaWprbG1ub3AifQ==","messageId":"1"},"subscription":"s"}`

// buildAlone builds each function as the cloud's buildpack does: as its own main package that imports the function's
// folder and starts the functions framework, without cgo.
func buildAlone(tb testing.TB, functions ...string) (dir string) {
	dir = tb.TempDir()
	root, err := filepath.Abs("..")
	if err != nil {
		tb.Fatal(err)
	}
	replace := map[string]string{}
	args := []string{"build", "-trimpath", "-ldflags=-s -w", "-overlay", filepath.Join(dir, "overlay.json"), "-o",
		dir + "/"}
	for _, name := range functions {
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
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
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

// begun is one start of a function.
type begun struct {
	ms     float64 // from the start of the process to the end of its first answer
	cpu    float64 // milliseconds of processor time until the process ended
	output string
}

// start starts a function, sends one request as soon as it listens, and ends it.
func (c *cloud) start(tb testing.TB, bin, name, method, path, body string, status int, settings ...string) (s begun) {
	port := freeport.For(tb)
	var out bytes.Buffer
	cmd := exec.Command(bin)
	if pin, err := exec.LookPath("taskset"); err == nil && runtime.GOOS == "linux" {
		cmd = exec.Command(pin, "-c", strconv.Itoa(cores()-1), bin)
	}
	cmd.Env = append([]string{"FUNCTION_TARGET=" + name, "PORT=" + port, "LOG_LEVEL=warn", "DATA_DIR=" + tb.TempDir(),
		"STORE=firestore", "GOOGLE_CLOUD_PROJECT=demo-start", "FIRESTORE_EMULATOR_HOST=" + c.firestore,
		"PUBSUB_EMULATOR_HOST=127.0.0.1:9", "MAX_RUNS_PER_MINUTE=0", "MAX_MODEL_CALLS_PER_DAY=0",
		"MAX_TOKENS_PER_DAY=0",
		"GEMINI_API_KEY=not-a-real-key-but-long-enough", "GEMINI_MODEL=fake",
		"GOOGLE_GEMINI_BASE_URL=" + c.url + "/gemini",
		"AUTH_ISSUER=" + c.url + "/issuer", "AUTH_AUDIENCE=test", "PUSH_ISSUER=" + c.url + "/issuer",
		"PUSH_AUDIENCE=" + pushAudience,
		"PUSH_SERVICE_ACCOUNT=" + pusher, "PUBLIC_URL=http://127.0.0.1:" + port}, settings...)
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
		s.output = out.String()
		s.cpu = milliseconds(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())
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
		tb.Fatalf("%s %s: %d %s, %v; want res.StatusCode %v", method, path, res.StatusCode, answer, err, status)
	}
	return begun{ms: milliseconds(time.Since(began))}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// cores returns the number of the machine's cores, even if this process can use fewer.
func cores() int {
	n, err := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*")
	if err != nil || len(n) == 0 {
		return runtime.NumCPU()
	}
	return len(n)
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
	if strings.HasPrefix(name, "resume") || name == "notify" || name == "sweep" {
		token, err = c.issuer.PushToken(pusher, pushAudience)
	}
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	return req
}

// initTime adds up the milliseconds in a trace's lines.
func initTime(tb testing.TB, trace string) (sum float64) {
	lines := 0
	for s := bufio.NewScanner(strings.NewReader(trace)); s.Scan(); {
		if in, ok := readInit(s.Text()); ok {
			sum, lines = sum+in.ms, lines+1
		}
	}
	if lines == 0 {
		tb.Fatalf("no trace of the initialisation: %s", trace)
	}
	return sum
}
