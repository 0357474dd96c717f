package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/model/gemini"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/countersign/internal/bridge"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// Turn is one answer of the model of a [Script]: [Say], [Call], a combination ([Turn.And]) or [Fail].
type Turn struct {
	turn fakegemini.Turn
	err  error // why the turn cannot be sent
}

// Say is an answer with text.
func Say(text string) Turn { return Turn{turn: fakegemini.Turn{Text: text}} }

// Call is an answer that calls a tool. The arguments are a value that encodes to a JSON object; nil sends none.
func Call(tool string, args any) Turn {
	t := Turn{}
	call := fakegemini.Call{Name: tool}
	if args != nil {
		raw, err := json.Marshal(args)
		var object map[string]any
		if err == nil && (json.Unmarshal(raw, &object) != nil || object == nil) {
			err = fmt.Errorf("the arguments of %s are not a JSON object: %s", tool, clip.Text(string(raw), 200))
		}
		t.err, call.Args = err, json.RawMessage(raw)
	}
	t.turn.Calls = []fakegemini.Call{call}
	return t
}

// Fail is an answer with an HTTP status, such as 503 or 429, and no content. The agent's client retries some of them,
// as with the service. The retry gets the script's next turn, without a delay.
func Fail(status int) Turn { return Turn{turn: fakegemini.Turn{Status: status}} }

// And returns one answer with the texts and the calls of both turns, in their order.
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

// Script returns a model with these answers. The agent uses the real client for Gemini, and each request must satisfy
// the service's published rules, including those of Gemini 3 about signatures. A request that the service would
// refuse fails the run, and so does a request after the last turn; the error says which. countersign.New reports a
// turn that cannot be sent.
func Script(turns ...Turn) *Model {
	s := &script{turns: turns}
	s.server = fakegemini.New(s.next)
	m := newModel(s.open)
	m.left = s.left
	m.provider.Check = func() error { return check(turns) }
	return m
}

// check returns the joined reasons why turns cannot be sent.
func check(turns []Turn) error {
	var wrong []error
	for i, t := range turns {
		if t.err != nil {
			wrong = append(wrong, fault.Invalid("Provider", "turn %d: %s", i+1, t.err).Because(t.err))
		}
	}
	return errors.Join(wrong...)
}

// script is the state of a Script.
type script struct {
	server *fakegemini.Server

	mu    sync.Mutex
	turns []Turn
}

func (s *script) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.turns)
}

// open returns the real client. Its requests stay in the process.
func (s *script) open(ctx context.Context, name string) (bridge.Answer, error) {
	client, err := gemini.New(ctx, gemini.Config{APIKey: "none", Model: name,
		BaseURL:    "http://script.invalid", // override the environment
		HTTPClient: &http.Client{Transport: inProcess{s.server}}, Sleep: noSleep})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, n int, req model.Request, delta func(string)) (*model.Reply, error) {
		var wrong misuse
		reply, err := client.Generate(context.WithValue(ctx, misuse{}, &wrong), req, delta)
		if err != nil && wrong.text != "" {
			err = wrong.error(n)
		}
		return reply, err
	}, nil
}

// header distinguishes the script's answers: turn is one of its turns, over is the answer after the last turn. A
// refusal of the server has no such header.
const header, over, turn = "X-Script", "over", "turn"

// next returns the answer to a request that satisfies the service's rules.
func (s *script) next(req fakegemini.Request) fakegemini.Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.turns) == 0 {
		return fakegemini.Turn{Status: http.StatusBadRequest, Header: http.Header{header: {over}},
			Body: fakegemini.ErrorBody(http.StatusBadRequest, clip.Text(string(req.Raw[len(req.Raw)-1]), 1000))}
	}
	t := s.turns[0].turn
	s.turns = s.turns[1:]
	t.Header = http.Header{header: {turn}}
	return t
}

// misuse records why no turn answered a request. It is also the type of the context key for it.
type misuse struct {
	over bool
	text string // the server's message
}

// error returns the error of request n. Its message has nothing of the conversation.
func (m misuse) error(n int) error {
	if m.over {
		return fault.New(fault.Model, model.CodeRefused, "The script has no turn left for request %d.", n).Because(
			bridge.ScriptError("the script has no turn left for a request that ends in " + m.text))
	}
	why := fmt.Sprintf("the service would refuse request %d: %s", n, m.text)
	return fault.New(fault.Model, model.CodeRefused, "The script does not answer: %s", why).Because(
		bridge.ScriptError(why))
}

// inProcess passes requests to a handler, without a network and without goroutines.
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
	if by := w.Header().Get(header); w.Code == http.StatusBadRequest && by != turn {
		var body struct{ Error struct{ Message string } }
		wrong, ok := r.Context().Value(misuse{}).(*misuse)
		if err := json.Unmarshal(w.Body.Bytes(), &body); err == nil && ok {
			*wrong = misuse{by == over, body.Error.Message}
		}
	}
	res := w.Result()
	res.Request = r
	return res, nil
}

func noSleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }
