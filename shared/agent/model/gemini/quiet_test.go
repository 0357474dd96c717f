package gemini_test

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/model/gemini"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// TestLogOfClientEnvironments makes clients in environments that genai comments on, and checks that the program's log
// has only the program's lines.
func TestLogOfClientEnvironments(t *testing.T) {
	var logged bytes.Buffer
	was := log.Writer()
	log.SetOutput(&logged)
	t.Cleanup(func() { log.SetOutput(was) })
	for name, value := range map[string]string{"GOOGLE_API_KEY": "a", "GEMINI_API_KEY": "b",
		"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l", "GOOGLE_GENAI_USE_VERTEXAI": "true",
		"GOOGLE_GENAI_USE_ENTERPRISE": "false"} {
		t.Setenv(name, value)
	}
	for name, cfg := range map[string]gemini.Config{
		"a key":     {APIKey: "k"},
		"a project": {VertexProject: "p", HTTPClient: http.DefaultClient},
	} {
		if _, err := gemini.New(t.Context(), cfg); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	log.Print("mine")
	if !strings.HasSuffix(logged.String(), "mine\n") || strings.Count(logged.String(), "\n") != 1 {
		t.Errorf("log: %s", logged.String())
	}
}

// TestLogOfBrokenStreams breaks streams off, and checks that the error is returned and nothing is written to the
// program's log.
func TestLogOfBrokenStreams(t *testing.T) {
	var logged bytes.Buffer
	was := log.Writer()
	log.SetOutput(&logged)
	t.Cleanup(func() { log.SetOutput(was) })
	for name, body := range map[string]string{
		"at once":          "",
		"behind a chunk":   `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Hel"}]}}]}` + "\n\n",
		"within a chunk":   `data: {"candidates":[{"content":{"role":"mo`,
		"with a long line": "data: " + strings.Repeat("x", 1<<20),
	} {
		r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Content-Length", "100000000") // more than it sends
			_, _ = io.WriteString(w, body)
		}), nil)
		_, err := r.Generate(t.Context(), model.Request{Contents: hello}, func(string) {})
		if f := fault.As(err); err == nil || f.Class != fault.Model {
			t.Errorf("%s: %v; want an error, f.Class %v", name, err, fault.Model)
		}
	}
	if logged.Len() > 0 {
		t.Errorf("log: %.500s", logged.String())
	}
}
