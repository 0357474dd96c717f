package contents

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/model/gemini"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// turn makes up an answer: words, calls of every kind, a malformed call, or an error.
func (w *scenario) turn(noTools bool) fakegemini.Turn {
	switch n := w.r.IntN(100); {
	case n < 6:
		w.count["correction"]++
		return fakegemini.Turn{Finish: "MALFORMED_FUNCTION_CALL"}
	case n < 9:
		w.count["model error"]++
		return fakegemini.Turn{Block: "SAFETY"}
	case n < 30 || noTools && n < 85:
		return fakegemini.Turn{Thought: w.some("hm"),
			Text: "So be it." + strings.Repeat(" And more of it.", w.r.IntN(10)/9*w.r.IntN(2000)), Pieces: 2}
	}
	t := fakegemini.Turn{Thought: w.some("hm"), Text: w.some("Let me see."), Pieces: 2}
	for range 1 + min(w.r.IntN(4), w.r.IntN(5)) + 14*(w.r.IntN(60)/59) {
		t.Calls = append(t.Calls, w.call())
	}
	if len(t.Calls) > 1 {
		w.count["parallel calls"]++
	}
	if noTools {
		w.count["correction"]++
	}
	return t
}

// answered records an answer. If the model thought, the thought is the first part.
func (w *scenario) answered(content json.RawMessage) {
	w.sent[string(content)] = true
	w.kept[strings.Replace(string(content), `{"text":"hm","thought":true},`, "", 1)] = true
}

func (w *scenario) some(s string) string {
	if w.r.IntN(3) == 0 {
		return s
	}
	return ""
}

// call returns a new call, or an exact repetition of an earlier one.
func (w *scenario) call() fakegemini.Call {
	switch w.r.IntN(24) {
	case 0:
		return fakegemini.Call{Name: "unheard_of", Args: map[string]any{"text": "so"}}
	case 1:
		return fakegemini.Call{Name: "post"}
	case 2:
		return fakegemini.Call{Name: "post", Args: map[string]any{"to": []string{}, "text": "nobody", "from": "ana"}}
	case 3:
		if w.r.IntN(8) == 0 {
			return fakegemini.Call{Name: "send mail!", Args: map[string]any{}}
		}
	case 4:
		if n := len(w.asked); n > 0 {
			w.count["call made again"]++
			return w.issue(w.asked[w.r.IntN(n)])
		}
	}
	w.tags++
	return w.issue(args{To: []string{pick(w.r, "bob@example.com", "eve@example.com", "zoé@example.com")},
		Text: fmt.Sprintf("t%d-“%s”", w.tags, pick(w.r, "ten", "<b>", "\u202e", "\\", "日本"))})
}

func (w *scenario) issue(a args) fakegemini.Call {
	w.asked = append(w.asked, a)
	if w.provider.long && w.r.IntN(2) == 0 {
		return fakegemini.Call{Name: "read", Args: a}
	}
	return fakegemini.Call{Name: pick(w.r, "post", "send", "send", "read"), Args: a}
}

// think is the model of a story. It checks its input before it answers.
func (w *scenario) think(system string, raw []json.RawMessage, contents []fakegemini.Content,
	noTools bool) fakegemini.Turn {
	w.count["requests"]++
	if w.asksSummary = strings.HasPrefix(system, "You summarise"); w.asksSummary {
		w.keptParts(raw, contents)
		return w.summary()
	}
	w.checkResponses(contents)
	if w.verbatim {
		w.keptParts(raw, contents)
	}
	return w.turn(noTools)
}

// summary makes up a summary: a usable one, one that is too long, an empty one, or an error.
func (w *scenario) summary() fakegemini.Turn {
	switch n := w.r.IntN(20); n {
	case 0:
		return fakegemini.Turn{Text: strings.Repeat("As was said. ", 100_000)}
	case 1:
		return fakegemini.Turn{Text: " "}
	case 2:
		return fakegemini.Turn{Block: "SAFETY"}
	}
	w.count["summarised"]++
	return fakegemini.Turn{Text: "Much was said."}
}

// direct is a model.Model without a network. It checks each request as it would be sent.
type direct struct{ w *scenario }

func (d direct) Name() string { return d.w.signer }

func (d direct) Generate(ctx context.Context, req model.Request, _ func(string)) (*model.Reply, error) {
	if model.AwaitCommit(ctx) != nil || d.w.life.dead {
		return nil, errDied
	}
	contents, err := fakegemini.CheckBy(d.w.signer, req.Contents, d.w.generation)
	if err != nil {
		d.w.fault("refused: %v", err)
		return nil, fault.New(fault.Model, model.CodeRefused, "The request is refused.").Because(err)
	}
	t := d.w.think(req.System, req.Contents, contents, req.NoTools)
	switch {
	case t.Block != "":
		return nil, fault.New(fault.Model, model.CodeBlocked, "Withheld.")
	case t.Finish != "" || req.NoTools && len(t.Calls) > 0:
		return &model.Reply{Finish: t.Finish,
			Correction: "Your last answer held a function call that may not be made, or could not be read."}, nil
	}
	d.w.answers++
	content := t.ContentBy(d.w.signer, []byte(fmt.Sprint(d.w.answers)), d.w.generation)
	p, err := model.Parse(content)
	if err != nil {
		return nil, err
	}
	d.w.answered(content)
	reply := &model.Reply{Content: content, Text: p.Text, Calls: p.Calls, Finish: "STOP", Model: "direct"}
	if d.w.r.IntN(3) > 0 {
		for _, c := range req.Contents {
			reply.Usage.Prompt += len(c) / run.BytesPerToken
		}
		reply.Usage.Output = len(content) / run.BytesPerToken
	}
	return reply, nil
}

// wire sends the stories' requests through Google's client over HTTP.
type wire struct {
	server *httptest.Server
	fake   *fakegemini.Server
	model  *gemini.Model
	walk   *scenario // the story that sends the requests
}

func newWire() (*wire, error) {
	w := &wire{}
	w.fake = fakegemini.New(func(r fakegemini.Request) fakegemini.Turn {
		return w.walk.think(r.System, r.Raw, r.Contents, r.NoTools)
	})
	w.server = httptest.NewServer(w.fake)
	var err error
	w.model, err = gemini.New(context.Background(),
		gemini.Config{APIKey: "k", BaseURL: w.server.URL, HTTPClient: &http.Client{}, Sleep: wait.For})
	return w, err
}

func (w *wire) Name() string { return "wire" }

func (w *wire) Generate(ctx context.Context, req model.Request, delta func(string)) (*model.Reply, error) {
	if model.AwaitCommit(ctx) != nil || w.walk.life.dead {
		return nil, errDied
	}
	before := len(w.fake.Refused())
	reply, err := w.model.Generate(ctx, req, delta)
	for _, r := range w.fake.Refused()[before:] {
		w.walk.fault("refused: %s", r)
	}
	if err == nil {
		w.walk.answered(reply.Content)
	}
	return reply, err
}
