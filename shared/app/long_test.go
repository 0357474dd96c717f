package app_test

import (
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// However much text the model returns, a stream carries no more than is stored, and its last line arrives.
func TestStreamLongAnswer(t *testing.T) {
	w := deploy(t)
	for _, c := range []struct {
		name string
		size int
		last map[string]string // by path
	}{
		{"as long as it may be", run.MaxMessageText, map[string]string{streamPath: "result", chatPath: "response"}},
		{"longer", 200 << 10, map[string]string{streamPath: "result", chatPath: "response"}},
		{"longer than is read", 11 << 20, map[string]string{streamPath: "error", chatPath: "error"}},
	} {
		text := "aaaa" + strings.Repeat("Längeres ", (c.size-4)/10) // the limit falls into the middle of an ä
		w.SetModel(func(fakegemini.Request) fakegemini.Turn { return fakegemini.Turn{Text: text, Pieces: 50} })
		for path, body := range map[string]string{streamPath: hello, chatPath: helloPage} {
			t.Run(c.name+" "+path, func(t *testing.T) {
				if c.size > 1<<20 {
					realpart.Unraced(t)
				}
				said, last := w.deltas(path, body)
				if len(said) > run.MaxMessageText || c.size <= run.MaxMessageText && said != text ||
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

// deltas returns the text of a stream, and the type of its last line.
func (w *proved) deltas(path, body string) (said, last string) {
	w.t.Helper()
	var all strings.Builder
	w.lines(path, body, func(l testkit.Line) {
		all.WriteString(l.Delta)
		last = l.Type
	})
	return all.String(), last
}

// lines calls each with the lines of a stream.
func (w *proved) lines(path, body string, each func(testkit.Line)) testkit.Answer {
	w.t.Helper()
	token, err := w.Token("ana")
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := testkit.Stream(w.t.Context(), nil, w.Base, token, "POST", path, body,
		func(l testkit.Line) bool { each(l); return true })
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}
