package check_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/web"
	"github.com/countersign-run/countersign/shared/web/widget"
)

// fakeAPI serves the console. A script in the browser sets the answers of the API: documents for GET requests, lines of
// streams, and frames of sockets. fakeAPI records the console's requests for the script. A script can thus show the
// console states that a real server reaches only rarely.
type fakeAPI struct {
	*httptest.Server

	mu      sync.Mutex
	changed *sync.Cond
	docs    map[string]json.RawMessage // by path: what GET returns
	lines   map[string][][]byte        // by path: of its stream
	sockets map[string][]frame         // by path
	deaf    map[string]bool            // by path: the socket neither reads from the console nor answers its close
	late    map[string]bool            // by path: the socket is not ready yet
	asked   []sent

	then map[string]map[string]json.RawMessage // by method and path: the documents that appear after the next request
}

type frame struct {
	Text  string `json:"text,omitempty"`
	Data  []byte `json:"data,omitempty"`
	Close bool   `json:"close,omitempty"`
	Once  bool   `json:"once,omitempty"` // sent on the next connection only
}

// sent is a request or a frame of the console.
type sent struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body,omitempty"`
	Text   string          `json:"text,omitempty"` // a text frame
	Data   []byte          `json:"data,omitempty"` // a binary frame
}

func newFakeAPI(t *testing.T) *fakeAPI {
	t.Helper()
	site, err := web.New(web.Options{LocalUsers: true, Widget: widget.Files()})
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeAPI{docs: map[string]json.RawMessage{}, then: map[string]map[string]json.RawMessage{},
		lines: map[string][][]byte{}, sockets: map[string][]frame{}, deaf: map[string]bool{}, late: map[string]bool{}}
	f.changed = sync.NewCond(&f.mu)
	mux := http.NewServeMux()
	mux.Handle("/", site)
	mux.HandleFunc("POST /fake/{what}", f.script)
	mux.HandleFunc("POST /dev/token", f.get)
	mux.HandleFunc("/api/agent/", f.api)
	mux.HandleFunc("GET /api/agent/runs/{id}/events", f.stream)
	mux.HandleFunc("GET /api/agent/terminals/{id}/socket", f.socket)
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

// script receives documents, lines and frames from the script, and returns the received requests to it.
func (f *fakeAPI) script(w http.ResponseWriter, r *http.Request) {
	at := r.URL.Query().Get("at")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.changed.Broadcast()
	switch r.PathValue("what") {
	case "doc":
		f.docs[at] = body
	case "then":
		var docs map[string]json.RawMessage
		if err := json.Unmarshal(body, &docs); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		f.then[at] = docs
	case "line":
		f.lines[at] = append(f.lines[at], body)
	case "frame":
		var x frame
		if err := json.Unmarshal(body, &x); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		f.sockets[at] = append(f.sockets[at], x)
	case "deaf":
		f.deaf[at] = string(bytes.TrimSpace(body)) == "true"
	case "late":
		f.late[at] = string(bytes.TrimSpace(body)) == "true"
	case "asked":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(f.asked) // the script notices
	}
}

// api records the request, and returns the document that the script has set for its method and path.
func (f *fakeAPI) api(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // an incomplete body is recorded as it is
	f.mu.Lock()
	s := sent{Method: r.Method, Path: r.URL.Path}
	if json.Valid(body) {
		s.Body = body
	}
	f.asked = append(f.asked, s)
	maps.Copy(f.docs, f.then[r.Method+" "+r.URL.Path])
	delete(f.then, r.Method+" "+r.URL.Path)
	f.mu.Unlock()
	f.get(w, r)
}

func (f *fakeAPI) get(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	doc, there := f.docs[r.Method+" "+r.URL.Path]
	f.mu.Unlock()
	var known struct {
		Status int             `json:"fakeStatus"`
		Body   json.RawMessage `json:"body"`
	}
	if !there {
		doc = json.RawMessage(`{"ok":false,"error":{"class":"ValidationError","code":"not_found","message":"not found"}}`)
	}
	_ = json.Unmarshal(doc, &known) // a document without a status
	w.Header().Set("Content-Type", "application/json")
	switch {
	case !there:
		w.WriteHeader(http.StatusNotFound)
	case known.Status != 0:
		w.WriteHeader(known.Status)
		doc = known.Body
	}
	_, _ = w.Write(slices.Concat(bytes.TrimSpace(doc), []byte{'\n'})) // the page may have left
}

// stream sends the lines of the path with numbers above after, and those without a number, as they arrive.
func (f *fakeAPI) stream(w http.ResponseWriter, r *http.Request) {
	var after int
	_, _ = fmt.Sscan(r.URL.Query().Get("after"), &after) // 0 without
	defer f.wakeAt(r)()
	for i := 0; ; i++ {
		f.mu.Lock()
		for len(f.lines[r.URL.Path]) <= i && r.Context().Err() == nil {
			f.changed.Wait()
		}
		lines := f.lines[r.URL.Path]
		f.mu.Unlock()
		if r.Context().Err() != nil {
			return
		}
		var e struct {
			Seq  int           `json:"seq"`
			Type run.EventType `json:"type"`
		}
		if err := json.Unmarshal(lines[i], &e); err != nil {
			return
		}
		if e.Seq == 0 || e.Seq > after {
			_, _ = w.Write(slices.Concat(bytes.TrimSpace(lines[i]), []byte{'\n'})) // the page may have left
			_ = http.NewResponseController(w).Flush()
		}
		if e.Type == run.RunEnded {
			return
		}
	}
}

func (f *fakeAPI) wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed.Broadcast()
}

// wakeAt makes the waiting goroutines check again when the request ends.
func (f *fakeAPI) wakeAt(r *http.Request) (stop func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-r.Context().Done():
			f.wake()
		case <-done:
		}
	}()
	return func() { close(done) }
}
