package app_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// However much the model says, a stream carries no more of it than is kept, and its last line arrives.
func TestALongAnswerIsCutInTheStream(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name string
		size int
		last map[string]string // by path
	}{
		{"as long as it may be", agent.MaxMessageText, map[string]string{streamPath: "result", chatPath: "response"}},
		{"longer", 200 << 10, map[string]string{streamPath: "result", chatPath: "response"}},
		{"longer than is read", 11 << 20, map[string]string{streamPath: "error", chatPath: "error"}},
	} {
		text := "aaaa" + strings.Repeat("Längeres ", (c.size-4)/10) // the bound falls into the middle of an ä
		w.SetModel(func(fakegemini.Request) fakegemini.Turn { return fakegemini.Turn{Text: text, Pieces: 50} })
		for path, body := range map[string]string{streamPath: hello, chatPath: helloPage} {
			t.Run(c.name+" "+path, func(t *testing.T) {
				said, last := w.deltas(path, body)
				if len(said) > agent.MaxMessageText || c.size <= agent.MaxMessageText && said != text ||
					!strings.HasPrefix(text, said) {
					t.Errorf("%d bytes of %d went down the stream", len(said), c.size)
				}
				if last != c.last[path] {
					t.Errorf("the last line is %q", last)
				}
			})
		}
	}
}

// deltas returns the text of a stream, and the kind of its last line.
func (w *proved) deltas(path, body string) (said, last string) {
	w.t.Helper()
	token, err := w.Token("ana")
	if err != nil {
		w.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), "POST", w.Base+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"},
		"Accept": {"application/x-ndjson"}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	var all strings.Builder
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Type, Delta string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			w.t.Fatal(err)
		}
		all.WriteString(line.Delta)
		last = line.Type
	}
	if lines.Err() != nil {
		w.t.Fatal(lines.Err())
	}
	return all.String(), last
}
