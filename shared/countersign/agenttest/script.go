package agenttest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/model/gemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// Turn is one answer of the model of a [Script]: [Say], [Call], both ([Turn.And]) or [Fail].
type Turn struct {
	turn fakegemini.Turn
	err  error // the turn cannot be sent
}

// Say is an answer in words.
func Say(text string) Turn { return Turn{turn: fakegemini.Turn{Text: text}} }

// Call is an answer that calls a tool. The arguments are a value whose JSON is an object; nil sends none.
func Call(tool string, args any) Turn {
	t := Turn{}
	call := fakegemini.Call{Name: tool}
	if args != nil {
		raw, err := json.Marshal(args)
		var object map[string]any
		if err == nil && (json.Unmarshal(raw, &object) != nil || object == nil) {
			err = fmt.Errorf("the arguments of %s are no JSON object: %s", tool, clip.Text(string(raw), 200))
		}
		t.err, call.Args = err, json.RawMessage(raw)
	}
	t.turn.Calls = []fakegemini.Call{call}
	return t
}

// Fail is an answer with an HTTP status such as 503 or 429 in place of a content. As with the service, the agent's
// client tries again after some of them: it then gets the script's next turn, and does not wait.
func Fail(status int) Turn { return Turn{turn: fakegemini.Turn{Status: status}} }

// And returns one answer with the words of both turns and the calls of both, in their order.
func (t Turn) And(more Turn) Turn {
	t.turn.Text += more.turn.Text
	t.turn.Calls = append(t.turn.Calls[:len(t.turn.Calls):len(t.turn.Calls)], more.turn.Calls...)
	if t.turn.Status == 0 {
		t.turn.Status = more.turn.Status
	}
	if t.err == nil {
		t.err = more.err
	}
	return t
}

// Script returns a model with these answers. The agent asks it through the real client for Gemini, and each request is
// held to the service's published rules, those of Gemini 3 with its signatures: one that the service would refuse
// with 400 fails the test and says why. So does a request behind the last turn, and at the end of the test a turn that
// was not asked for.
func Script(t testing.TB, turns ...Turn) *Model {
	t.Helper()
	for i, turn := range turns {
		if turn.err != nil {
			t.Fatalf("agenttest: turn %d: %v", i+1, turn.err)
		}
	}
	s := &script{turns: turns}
	s.server = fakegemini.New(s.next)
	open := func(ctx context.Context, name string) (answer, error) {
		client, err := gemini.New(ctx, gemini.Config{APIKey: "none", Model: name,
			BaseURL:    "http://script.invalid", // and not what the environment says
			HTTPClient: &http.Client{Transport: inProcess{s.server}}, Sleep: noSleep})
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, n int, req model.Request, delta func(string)) (*model.Reply, error) {
			reply, err := client.Generate(ctx, req, delta)
			s.report(n)
			return reply, err
		}, nil
	}
	s.model = newModel(t, open, func(int) {
		if left := s.left(); left > 0 {
			t.Errorf("agenttest: %d of the script's %d turns were not asked for", left, len(turns))
		}
	})
	return s.model
}

// script is the state of a Script.
type script struct {
	server *fakegemini.Server
	model  *Model

	mu      sync.Mutex
	turns   []Turn
	refused int // refusals that were reported
}

// next returns the answer to a request that is as the service wants it.
func (s *script) next(req fakegemini.Request) fakegemini.Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.turns) == 0 {
		s.model.fail("the script has no turn left for a request that ends in %s",
			clip.Text(string(req.Raw[len(req.Raw)-1]), 1000))
		return fakegemini.Turn{Status: http.StatusBadRequest}
	}
	t := s.turns[0]
	s.turns = s.turns[1:]
	return t.turn
}

func (s *script) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.turns)
}

// report fails the test for what the server has refused since.
func (s *script) report(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.server.Refused()
	for _, why := range all[min(s.refused, len(all)):] {
		s.model.fail("the service would refuse request %d: %s", n, why)
	}
	s.refused = len(all)
}

// inProcess sends requests to a handler, without a network and without goroutines.
type inProcess struct{ http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if r.Body != nil {
		defer r.Body.Close()
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	res := w.Result()
	res.Request = r
	return res, nil
}

func noSleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }
