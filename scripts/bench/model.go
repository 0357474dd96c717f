package main

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"

	"github.com/countersign-run/countersign/scripts/bench/fake"
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
	m := &model{"http://" + ln.Addr().String(), &http.Server{Handler: fake.Handler(reply)}}
	go func() { _ = m.web.Serve(ln) }() // it ends with Close
	return m, nil
}

// Close stops the model.
func (m *model) Close() { m.web.Close() }

// reply makes the call that the prompt spells out, as in `call send_mail {"text":"milk"}`, or otherwise answers with
// text.
func reply(r fakegemini.Request) fakegemini.Turn {
	words, asked := strings.CutPrefix(r.User(), "call ")
	if !asked || len(r.Responses()) > 0 || r.NoTools {
		return fakegemini.Turn{Text: "That is all there is to say about it.", Pieces: 1}
	}
	name, args, _ := strings.Cut(words, " ")
	return fakegemini.Turn{Calls: []fakegemini.Call{{Name: name, Args: json.RawMessage(args)}}, Pieces: 1}
}
