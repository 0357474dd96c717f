package agui_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/chatclients"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// TestFiles sends files as AG-UI 1.0 and older clients do. The next message sends them again as history.
func TestFiles(t *testing.T) {
	data := base64.StdEncoding.EncodeToString([]byte("%PDF-1.7\n"))
	modern := func(kind, source, value string) any {
		return map[string]any{"type": kind, "metadata": map[string]any{"filename": kind},
			"source": map[string]any{"type": source, "value": value, "mimeType": "text/plain"}}
	}
	for name, c := range map[string]struct {
		file    any
		refused string // the field of the error
	}{
		"document": {modern("document", "data", data), ""},
		"image":    {modern("image", "url", "data:application/pdf;base64,"+data), ""},
		"binary": {map[string]any{"type": "binary", "mimeType": "application/pdf", "data": data, "filename": "binary"},
			""},
		"a URL":           {modern("image", "url", "https://x.example/a.png"), "messages/0/content/1/source/value"},
		"a provider file": {modern("audio", "file", "files/7"), "messages/0/content/1/source/type"},
	} {
		t.Run(name, func(t *testing.T) {
			w := chatclients.Open(t)
			w.SetModel(testkit.Says("Read."))
			cl := connect(t, w, "ana", "mine")
			now := cl.does("say", map[string]any{"text": "read", "files": []any{c.file}})
			requests := w.Gemini.Requests()
			if c.refused != "" {
				if !strings.Contains(now.Error, "HTTP 400") || !strings.Contains(now.Error, c.refused) ||
					len(requests) > 0 {
					t.Errorf("%s", now)
				}
				return
			}
			want(t, now, "user: read [file]; assistant: Read.")
			sent := all(requests[0])
			if !strings.Contains(sent, data) || !strings.Contains(sent, `\"`+name+`\"`) {
				t.Errorf("the model did not get the file: %s", sent)
			}
			want(t, cl.says("and now?"), "user: read [file]; assistant: Read.; user: and now?; assistant: Read.")
			if sent := all(w.Gemini.Requests()[1]); strings.Contains(sent, data) {
				t.Errorf("the model got the file again: %s", sent)
			}
		})
	}
}

// all returns the contents of a request as text.
func all(r fakegemini.Request) (text string) {
	for _, c := range r.Raw {
		text += string(c)
	}
	return text
}
