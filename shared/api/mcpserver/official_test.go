package mcpserver_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/emulate"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
	"github.com/countersign-run/countersign/shared/testkit/mcpservers"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// give creates an agent token of ana's.
func give(t *testing.T, w *testkit.Deployment) (token string) {
	t.Helper()
	if _, err := w.As(t.Context(), "ana"); err != nil {
		t.Fatal(err)
	}
	_, token, err := w.App.API.Records.AddToken(t.Context(), "ana", "official", nil)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// TestConformance runs the protocol's conformance tests for servers that have only tools.
func TestConformance(t *testing.T) {
	runner := mcpservers.Conformance(t, emulate.Node(t))
	door := httptest.NewUnstartedServer(nil)
	port := fmt.Sprintf(":%d", door.Listener.Addr().(*net.TCPAddr).Port)
	w := testkit.Open(t, testkit.Options{Settings: []string{"ALLOWED_ORIGINS=http://localhost" + port}})
	base, err := url.Parse(w.Base)
	if err != nil {
		t.Fatal(err)
	}
	token := give(t, w)
	// The runner sends no token.
	door.Config.Handler = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(base)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+token)
	}}
	door.Start()
	t.Cleanup(door.Close)
	for _, scenario := range []string{"server-initialize", "ping", "tools-list", "dns-rebinding-protection"} {
		t.Run(scenario, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), runner[0], append(slices.Clone(runner[1:]), "server", "--url",
				"http://localhost"+port+"/mcp", "--scenario", scenario)...)
			cmd.Dir = t.TempDir()
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), ", 0 failed, 0 warnings") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestOfficialClient requests an e-mail with the official TypeScript client, and the user approves it.
func TestOfficialClient(t *testing.T) {
	command, sdk := mcpservers.Client(t, "testdata/client.mjs")
	w := testkit.Open(t, testkit.Options{})
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Env = append(os.Environ(), sdk, "URL_OF_MCP="+w.Base+"/mcp", "TOKEN="+give(t, w))
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var tools []string
	said(t, lines, &tools)
	if !slices.Contains(tools, "gmail_send") || !slices.Contains(tools, "wait_for_approval") {
		t.Fatalf("it sees the tools %v", tools)
	}
	asked := calls(t, in, lines, `{"name":"gmail_send","arguments":{"to":["bob@example.com"],"subject":"s","body":"b"}}`)
	card, err := w.Call(t.Context(), "ana", "GET", "/api/agent/approvals/pending", "")
	if err != nil || len(card.Approvals) != 1 || asked.Status != "awaiting_confirmation" {
		t.Fatalf("%+v, %v, %s; want len(card.Approvals) 1, asked.Status “awaiting_confirmation”", asked, err, card.Body)
	}
	a, err := w.Resolve(t.Context(), "ana", card.Approvals[0], "approve_once")
	if err != nil || a.HTTP != http.StatusOK {
		t.Fatalf("%v, %d %s; want a.HTTP %v", err, a.HTTP, a.Body, http.StatusOK)
	}
	if _, err := w.Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := calls(t, in, lines, fmt.Sprintf(`{"name":"wait_for_approval","arguments":{"runId":%q}}`, asked.RunID))
	if done.Status != "completed" || len(w.Google.Messages()) != 1 {
		t.Errorf("%+v, %d e-mails", done, len(w.Google.Messages()))
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

type answer struct{ Status, RunID string }

// calls sends a call and returns its answer.
func calls(t *testing.T, in io.Writer, out *bufio.Scanner, call string) answer {
	t.Helper()
	if _, err := io.WriteString(in, call+"\n"); err != nil {
		t.Fatal(err)
	}
	var a struct{ StructuredContent answer }
	said(t, out, &a)
	return a.StructuredContent
}

func said(t *testing.T, out *bufio.Scanner, v any) {
	t.Helper()
	if !out.Scan() {
		t.Fatalf("the client has ended: %v", out.Err())
	}
	if err := json.Unmarshal(out.Bytes(), v); err != nil {
		t.Fatalf("%s: %v", out.Bytes(), err)
	}
}
