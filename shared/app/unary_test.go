package app_test

import (
	"net/http"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// TestStreamedModelCalls checks, for each kind of request, whether the model is asked to stream.
func TestStreamedModelCalls(t *testing.T) {
	w := deploy(t)
	w.SetModel(func(fakegemini.Request) fakegemini.Turn { return fakegemini.Turn{Text: "Hello there.", Pieces: 3} })
	asked := func() fakegemini.Request {
		all := w.Gemini.Requests()
		return all[len(all)-1]
	}
	for path, body := range map[string]string{runPath: hello, chatPath: helloPage} {
		if a := w.call("POST", path, body); a.HTTP != http.StatusOK {
			t.Fatalf("%s: %+v; want a.HTTP %v", path, a, http.StatusOK)
		}
		if asked().Stream {
			t.Errorf("%s: nobody reads what is said, and the model is asked for a stream", path)
		}
	}
	for path, body := range map[string]string{streamPath: hello, chatPath: helloPage} {
		pieces := 0
		w.lines(path, body, func(l testkit.Line) {
			if l.Delta != "" {
				pieces++
			}
		})
		if !asked().Stream || pieces < 2 {
			t.Errorf("%s: the model is asked for a stream: %t; %d pieces of it came", path, asked().Stream, pieces)
		}
	}
}
