package obs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// edge serves one request through the middleware, and returns the logged lines and the response. The middleware's clock
// advances by a quarter of a second at each reading.
func edge(t *testing.T, r *http.Request, next http.HandlerFunc) ([]map[string]any, *httptest.ResponseRecorder) {
	t.Helper()
	var out bytes.Buffer
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { at = at.Add(250 * time.Millisecond); return at }
	log := obs.New(&out, obs.Options{Level: "debug", Project: "p1", Release: "r1"})
	handler := obs.Middleware(log, strings.NewReader("0123456789abcdef"), clock, next)
	w := httptest.NewRecorder()
	func() {
		defer func() {
			if v := recover(); v != nil && v != http.ErrAbortHandler {
				t.Errorf("the edge panicked with %v", v)
			}
		}()
		handler.ServeHTTP(w, r)
	}()
	var lines []map[string]any
	for text := range strings.Lines(out.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	return lines, w
}

func ok(http.ResponseWriter, *http.Request) {}

// TestStrictTransportSecurity checks that every answer over TLS has Strict-Transport-Security, whatever its status, and
// that no other answer has it.
func TestStrictTransportSecurity(t *testing.T) {
	for name, next := range map[string]http.HandlerFunc{
		"ok":      ok,
		"refused": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
		"panic":   func(http.ResponseWriter, *http.Request) { panic("!") },
	} {
		for proto, want := range map[string]string{"https": "max-age=63072000", "http": "", "": ""} {
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("X-Forwarded-Proto", proto)
			if _, w := edge(t, r, next); w.Header().Get("Strict-Transport-Security") != want {
				t.Errorf("%s by %q: %v", name, proto, w.Header())
			}
		}
	}
	if _, w := edge(t, httptest.NewRequest("GET", "https://agent.example.com/", nil),
		ok); w.Header().Get("Strict-Transport-Security") == "" {
		t.Error("by TLS of our own: none")
	}
}

func labels(line map[string]any) map[string]any {
	l, _ := line["logging.googleapis.com/labels"].(map[string]any)
	return l
}

func TestRequestLine(t *testing.T) {
	r := httptest.NewRequest("POST", "/api/agent/runs/r-1/cancel?token="+canary, strings.NewReader(canary))
	r.Header.Set("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/agent/runs/{runId}/cancel", func(w http.ResponseWriter, r *http.Request) {
		obs.SetUser(r.Context(), "user-"+canary)
		obs.SetRun(r.Context(), r.PathValue("runId"))
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, "12345")
	})
	lines, w := edge(t, r, mux.ServeHTTP)
	if len(lines) != 1 {
		t.Fatalf("%d lines: %v", len(lines), lines)
	}
	line := lines[0]
	request, _ := line["httpRequest"].(map[string]any)
	want := map[string]any{"requestMethod": "POST", "requestUrl": "POST /api/agent/runs/{runId}/cancel",
		"status": 409.0, "responseSize": "5", "latency": "0.250000s"}
	has(t, request, want)
	has(t, line, map[string]any{"severity": "INFO", "runId": "r-1", "user": obs.UserHash("user-" + canary),
		"logging.googleapis.com/trace":         "projects/p1/traces/4bf92f3577b34da6a3ce929d0e0e4736",
		"logging.googleapis.com/spanId":        "00f067aa0ba902b7",
		"logging.googleapis.com/trace_sampled": true})
	const id = "30313233343536373839616263646566"
	if got := w.Header().Get("X-Request-Id"); got != id {
		t.Errorf("the ID is %q, want %q", got, id)
	}
	has(t, labels(line), map[string]any{"requestId": id, "release": "r1"})
	if text, err := json.Marshal(line); err != nil || strings.Contains(string(text), canary) {
		t.Errorf("%s %v", text, err)
	}
}

func TestRequestIDs(t *testing.T) {
	const own = "30313233343536373839616263646566"
	for given, want := range map[string]string{
		"":                           own,
		"abc\" severity=\"ERROR":     own, // HD-017
		"short":                      own,
		"abcdefgh":                   "abcdefgh",
		"A_-9" + "bcdefgh":           "A_-9bcdefgh",
		"abcdefgh\n":                 own,
		strings.Repeat("a", 64):      strings.Repeat("a", 64),
		strings.Repeat("a", 65):      own,
		"ａｂｃｄｅｆｇｈ":                   own,
		"abcdefgh,ijklmnop":          own,
		"00000000-0000-0000-0000-0a": "00000000-0000-0000-0000-0a",
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["X-Request-Id"] = []string{given}
		var seen string
		lines, w := edge(t, r, func(_ http.ResponseWriter, r *http.Request) { seen = obs.RequestID(r.Context()) })
		if got := labels(lines[0])["requestId"]; got != want || seen != want || w.Header().Get("X-Request-Id") != want {
			t.Errorf("%q became %v, %q, %q, want %q", given, got, seen, w.Header().Get("X-Request-Id"), want)
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header["X-Request-Id"] = []string{"abcdefgh", "ijklmnop"}
	if _, w := edge(t, r, ok); w.Header().Get("X-Request-Id") != own {
		t.Error("one of two ids was taken")
	}
	if obs.RequestID(context.Background()) != "" {
		t.Error("there is an id outside a request")
	}
}

func TestTraces(t *testing.T) {
	const id, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	tests := map[string]struct{ parent, cloud, id, span string }{
		"none":               {},
		"W3C":                {parent: "00-" + id + "-" + span + "-00", id: id, span: span},
		"W3C, later version": {parent: "01-" + id + "-" + span + "-00-more", id: id, span: span},
		"W3C wins": {parent: "00-" + id + "-" + span + "-00",
			cloud: strings.Repeat("a", 32) + "/1", id: id, span: span},
		"W3C, more in version 00":           {parent: "00-" + id + "-" + span + "-00-more"},
		"W3C, version ff":                   {parent: "ff-" + id + "-" + span + "-00"},
		"W3C, zero trace":                   {parent: "00-" + strings.Repeat("0", 32) + "-" + span + "-00"},
		"W3C, zero span":                    {parent: "00-" + id + "-" + strings.Repeat("0", 16) + "-00"},
		"W3C, capitals":                     {parent: "00-" + strings.ToUpper(id) + "-" + span + "-00"},
		"W3C, endless":                      {parent: "01-" + id + "-" + span + "-00-" + strings.Repeat("x", 200)},
		"Google's, behind a wrong W3C":      {parent: "x", cloud: id + "/67667974448284343;o=1", id: id, span: span},
		"Google's without span":             {cloud: id, id: id},
		"Google's with a span out of range": {cloud: id + "/99999999999999999999", id: id},
		"Google's, wrong":                   {cloud: id + "/1;o=1\" x"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("traceparent", tt.parent)
			r.Header.Set("X-Cloud-Trace-Context", tt.cloud)
			lines, _ := edge(t, r, ok)
			trace, _ := lines[0]["logging.googleapis.com/trace"].(string)
			spanID, _ := lines[0]["logging.googleapis.com/spanId"].(string)
			if strings.TrimPrefix(trace, "projects/p1/traces/") != tt.id || spanID != tt.span {
				t.Errorf("got %q and %q; want strings.TrimPrefix(trace, \"projects/p1/traces/\") %v, spanID %v",
					trace, spanID, tt.id, tt.span)
			}
		})
	}
}

// bearer has a name that Redact takes for the beginning of a token.
func bearer(v any) { panic(v) }

func TestPanics(t *testing.T) {
	r := func() *http.Request { return httptest.NewRequest("GET", "/", nil) }
	t.Run("before an answer", func(t *testing.T) {
		lines, w := edge(t, r(), func(http.ResponseWriter, *http.Request) { panic(errors.New("Bearer " + canary)) })
		if len(lines) != 2 {
			t.Fatalf("%d lines, want 2: %v", len(lines), lines)
		}
		has(t, lines[0], map[string]any{"message": "a handler panicked"})
		has(t, lines[1], map[string]any{"severity": "ERROR"})
		var body struct {
			OK    bool
			Error struct{ Class, Code, Message, RequestID string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != 500 {
			t.Errorf("answered %d %q (%v), want 500", w.Code, w.Body, err)
		}
		got := [2]string{body.Error.Code, body.Error.RequestID}
		if want := [2]string{"internal", w.Header().Get("X-Request-Id")}; got != want {
			t.Errorf("code and request are %q, want %q", got, want)
		}
		if text, err := json.Marshal(lines); err != nil || strings.Contains(string(text), canary) ||
			!strings.Contains(string(text), "TestPanics") {
			t.Errorf("%s %v", text, err)
		}
	})
	for name, v := range map[string]any{
		"string": canary, "*fmt.wrapError": fmt.Errorf("of %w", errors.New(canary)),
		"obs_test.private":    private{Name: canary},
		"*errors.errorString": errors.New("they wrote: " + canary), "int": 7,
	} {
		t.Run("no words of a "+name, func(t *testing.T) {
			lines, _ := edge(t, r(), func(http.ResponseWriter, *http.Request) { bearer(v) })
			if text := fmt.Sprint(lines); strings.Contains(text, canary) || lines[0]["panic"] != name {
				t.Error(text)
			}
			if trace := fmt.Sprint(lines[0]["stack"]); !strings.Contains(trace, "obs_test.bearer(edge_test.go:") ||
				strings.Contains(trace, "0x") || strings.Contains(trace, "[redacted]") {
				t.Errorf("the stack is %s", trace)
			}
		})
	}
	t.Run("within an answer", func(t *testing.T) {
		lines, w := edge(t, r(), func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half")
			panic("x")
		})
		if len(lines) != 2 || w.Body.String() != "half" {
			t.Fatalf("%d lines and the answer %q, want 2 and half: %v", len(lines), w.Body, lines)
		}
		has(t, lines[1], map[string]any{"severity": "ERROR"})
	})
	t.Run("on purpose", func(t *testing.T) {
		lines, _ := edge(t, r(), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		if len(lines) != 1 {
			t.Errorf("the lines are %v", lines)
		}
	})
}

func TestFlushOfStreams(t *testing.T) {
	_, w := edge(t, httptest.NewRequest("GET", "/", nil), func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "a")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		w.(http.Flusher).Flush()
	})
	if !w.Flushed {
		t.Error("nothing was flushed")
	}
}

func TestMadeUpMethods(t *testing.T) {
	lines, _ := edge(t, httptest.NewRequest(strings.Repeat("X", 1000), "/", nil), ok)
	if request, _ := lines[0]["httpRequest"].(map[string]any); request["requestMethod"] != "other" ||
		request["status"] != 200.0 {
		t.Errorf("the request is %v", request)
	}
}
