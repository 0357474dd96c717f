package ui_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// TestFiles sends files with the SDK's sendMessage. The next message sends them again as history.
func TestFiles(t *testing.T) {
	each(t, func(t *testing.T, w *testkit.Deployment, c *client) {
		w.SetModel(testkit.Says("Read."))
		data := base64.StdEncoding.EncodeToString([]byte("%PDF-1.7\n"))
		file := func(name, url string) map[string]any {
			f := map[string]any{"type": "file", "mediaType": "application/pdf", "url": url}
			if name != "" {
				f["filename"] = name
			}
			return f
		}
		refused := c.does("send", map[string]any{"text": "read", "files": []any{file("", "https://x.example/a.pdf")}})
		if !strings.Contains(refused.Error, "does not fetch") ||
			!strings.Contains(refused.Error, "messages/0/parts/0/url") {
			t.Errorf("a URL: %s", refused)
		}
		c.does("reload", nil)
		now := c.does("send", map[string]any{"text": "read",
			"files": []any{file("offer.pdf", "data:application/pdf;base64,"+data), file("", "data:text/plain,hello")}})
		const read = "user: read; run completed; assistant: Read."
		if got := now.String(); !strings.HasSuffix(strings.ReplaceAll(got, "file offer.pdf; file ; ", ""), read) {
			t.Errorf("it reads %s", got)
		}
		const next = "user: and now?; run completed; assistant: Read."
		if now = c.says("and now?"); !strings.HasSuffix(now.String(), next) {
			t.Errorf("then it reads %s", now)
		}
		requests := w.Gemini.Requests()
		first, last := all(requests[0]), all(requests[len(requests)-1])
		hello := base64.StdEncoding.EncodeToString([]byte("hello"))
		if !strings.Contains(first, data) || !strings.Contains(first, hello) ||
			!strings.Contains(first, `\"file 2\"`) {
			t.Errorf("the model did not get the files: %s", first)
		}
		if strings.Contains(last, data) || len(requests) != 2 {
			t.Errorf("the model got the files %d times: %s", len(requests), last)
		}
	})
}

// all returns the contents of a request as text.
func all(r fakegemini.Request) (text string) {
	for _, c := range r.Raw {
		text += string(c)
	}
	return text
}
