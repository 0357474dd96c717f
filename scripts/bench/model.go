package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// model is the fake Gemini of all contestants. It answers at once, in one piece, and refuses what the service refuses.
type model struct {
	url string
	web *http.Server
}

func startModel() (*model, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	newest, older := fakegemini.New(reply), fakegemini.New(reply)
	older.Generation = fakegemini.Gemini2 // whose rules each framework keeps
	m := &model{"http://" + ln.Addr().String(), &http.Server{Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.URL.Path, "/gemini-2") {
				newest.ServeHTTP(w, r)
				return
			}
			if err := knownRoles(r); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			older.ServeHTTP(w, r)
		})}}
	go func() { _ = m.web.Serve(ln) }() // it ends with Close
	return m, nil
}

// knownRoles makes a user's what some frameworks send in a role of its own: the fake is stricter there than the
// service.
func knownRoles(r *http.Request) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, fakegemini.MaxBody))
	for _, role := range []string{"tool", "function"} {
		body = bytes.ReplaceAll(body, []byte(`"role":"`+role+`"`), []byte(`"role":"user"`))
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err
}

// Close stops the model.
func (m *model) Close() { m.web.Close() }

// reply makes the call that the prompt spells out, as in `call send_mail {"text":"milk"}`, and says words otherwise.
func reply(r fakegemini.Request) fakegemini.Turn {
	words, asked := strings.CutPrefix(r.User(), "call ")
	if !asked || len(r.Responses()) > 0 || r.NoTools {
		return fakegemini.Turn{Text: "That is all there is to say about it.", Pieces: 1}
	}
	name, args, _ := strings.Cut(words, " ")
	return fakegemini.Turn{Calls: []fakegemini.Call{{Name: name, Args: json.RawMessage(args)}}, Pieces: 1}
}
