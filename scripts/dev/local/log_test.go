package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// TestLog logs requests in both forms. Short lines have the same redactions as long ones, and omit successful sweeps
// and health checks.
func TestLog(t *testing.T) {
	status := http.StatusOK
	written := func(form, route string) string {
		var out bytes.Buffer
		mux := http.NewServeMux()
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) })
		h := obs.Middleware(logger(&out, form, obs.Options{}), rand.Reader, time.Now, mux)
		method, path, _ := strings.Cut(route, " ")
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path+"?q=secret", nil))
		return out.String()
	}
	line := regexp.MustCompile(`^\d\d:\d\d:\d\d POST /api/agent/run 200 \d+(\.\d+)?(µs|ms|s)\n$`)
	if got := written("short", "POST /api/agent/run"); !line.MatchString(got) {
		t.Errorf("a request is %q", got)
	}
	for _, route := range []string{"GET /health", "POST /api/agent/sweep"} {
		if got := written("short", route); got != "" {
			t.Errorf("%s writes %q", route, got)
		}
		if got := written("json", route); !json.Valid([]byte(got)) || !strings.Contains(got, `"httpRequest"`) {
			t.Errorf("%s writes, as JSON, %q", route, got)
		}
	}
	status = http.StatusInternalServerError
	if got := written("short", "POST /api/agent/sweep"); !strings.Contains(got, " ERROR POST /api/agent/sweep 500 ") {
		t.Errorf("a sweep that failed writes %q", got)
	}
	var out bytes.Buffer
	logger(&out, "short", obs.Options{}).Warn("it is late", "by", 3, "token", "CANARY")
	if got := out.String(); !strings.Contains(got, " WARNING it is late by=3 ") || strings.Contains(got, "CANARY") ||
		strings.Count(got, "\n") != 1 {
		t.Errorf("a warning writes %q", got)
	}
}

func TestFlags(t *testing.T) {
	for _, help := range []string{"-h", "--help"} {
		var out strings.Builder
		_, err := parse([]string{help}, &out)
		if !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%s: %v", help, err)
		}
		for _, want := range []string{"usage: go run ./scripts/dev", "PORT=9000", "-addr", "-emulators", "-log"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s does not mention %s:\n%s", help, want, out.String())
			}
		}
	}
	for _, args := range [][]string{{"-log", "xml"}, {"-port", "1"}, {"more"}} {
		var out strings.Builder
		if _, err := parse(args, &out); err == nil || out.Len() > 0 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, and on the output %q", args, err, out.String())
		}
	}
}

// TestPortInUse starts the server on a port that is in use.
func TestPortInUse(t *testing.T) {
	taken, err := listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = listen(taken.Addr().String())
	if err == nil || !strings.Contains(err.Error(), "-addr ") || !strings.Contains(err.Error(), "PORT") {
		t.Errorf("on a port in use: %v", err)
	}
}

// TestStopDuringStart stops the server by Ctrl-C before it is ready. This is not an error.
func TestStopDuringStart(t *testing.T) {
	t.Setenv("DATA_DIR", t.TempDir())
	t.Setenv("LOG_LEVEL", "silent")
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := execute(stopped, options{addr: "127.0.0.1:0"}); err != nil {
		t.Errorf("the server returned %v", err)
	}
}
