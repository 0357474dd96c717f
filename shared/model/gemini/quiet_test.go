package gemini_test

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/model"
)

// TestABrokenStreamIsSilent has streams break off: the error is returned, and nothing is written to the log of the
// program.
func TestABrokenStreamIsSilent(t *testing.T) {
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
			w.Header().Set("Content-Length", "100000000") // which it does not send
			_, _ = io.WriteString(w, body)
		}), nil)
		_, err := r.Generate(t.Context(), model.Request{Contents: hello}, func(string) {})
		if f := fault.As(err); err == nil || f.Class != fault.Model {
			t.Errorf("%s: %v", name, err)
		}
	}
	if logged.Len() > 0 {
		t.Errorf("logged is %.500s", logged.String())
	}
}
