package countersign_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

type invoice struct {
	From  string  `json:"from"`
	Total float64 `json:"total" jsonschema:"in euros"`
	Items []item  `json:"items,omitempty"`
}

type item struct {
	What string `json:"what"`
}

// strict is a type whose own check refuses what its schema allows.
type strict string

func (s *strict) UnmarshalJSON(b []byte) error {
	if strings.Contains(string(b), "wrong") {
		return errors.New("it is wrong")
	}
	*s = strict(strings.Trim(string(b), `"`))
	return nil
}

func final(args any) script.Turn {
	return script.Turn{Calls: []script.Call{{Name: "final_answer", Args: args}}}
}

// TestSendAs has answers of several forms given: at once, after a tool, after words and after a wrong one.
func TestSendAs(t *testing.T) {
	look := call("get_weather", map[string]any{"city": "Lisbon"})
	bill := map[string]any{"from": "ACME", "total": 12.5, "items": []any{map[string]any{"what": "rope"}}}
	for name, c := range map[string]struct {
		turns []script.Turn
		send  func(context.Context, *countersign.Session) (any, *countersign.Result, error)
		want  string // as JSON; else what the error holds
		fails bool
	}{
		"an object, after a tool": {turns: []script.Turn{look, final(bill)}, send: sendAs[invoice],
			want: `{"from":"ACME","total":12.5,"items":[{"what":"rope"}]}`},
		"after words and a wrong one": {turns: []script.Turn{say("It is 12.50."), final(map[string]any{"from": 5}),
			final(bill)}, send: sendAs[invoice], want: `{"from":"ACME","total":12.5,"items":[{"what":"rope"}]}`},
		"a list": {turns: []script.Turn{final(map[string]any{"value": []string{"a", "b"}})}, send: sendAs[[]string],
			want: `["a","b"]`},
		"a number": {turns: []script.Turn{final(map[string]any{"value": 4})}, send: sendAs[int], want: "4"},
		"never": {turns: []script.Turn{say("No."), say("I will not."), say("Still not."), say("No, really.")},
			send: sendAs[invoice], want: "No, really.", fails: true},
		"never right": {turns: []script.Turn{final(map[string]any{"a": 1}), final(map[string]any{"a": 2}),
			final(map[string]any{"a": 3}), final(map[string]any{"a": 4})}, send: sendAs[invoice], want: `{"a":4}`,
			fails: true},
		"what the type refuses": {turns: []script.Turn{final(map[string]any{"value": "wrong"})}, send: sendAs[strict],
			want: `{"value":"wrong"}`, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newScript(c.turns...)
			a := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{getWeather}, MaxModelCalls: 4})
			v, res, err := c.send(t.Context(), a.NewSession())
			if res == nil || m.Left() > 0 {
				t.Fatal(err, m.Left())
			}
			if c.fails {
				wrong := &countersign.OutputError{}
				if !errors.As(err, &wrong) || wrong.Output != c.want || strings.Contains(err.Error(), c.want) {
					t.Errorf("%v holds %q", err, wrong.Output)
				}
				return
			}
			got, failed := json.Marshal(v)
			if err != nil || failed != nil || string(got) != c.want || res.Status != countersign.Completed {
				t.Errorf("%v %s %+v; want failed nil, got %v, res.Status %v",
					err, got, res, c.want, countersign.Completed)
			}
		})
	}
}

func sendAs[T any](ctx context.Context, s *countersign.Session) (any, *countersign.Result, error) {
	return countersign.SendAs[T](ctx, s, "What is it?")
}

// TestSendAsForcedTool has the answer's tool called on the last call, whatever the generation of the model.
func TestSendAsForcedTool(t *testing.T) {
	for _, generation := range []fakegemini.Generation{fakegemini.Gemini2, fakegemini.Gemini3} {
		fake := fakegemini.New(func(r fakegemini.Request) fakegemini.Turn {
			if r.Mode == "ANY" && len(r.Allowed) == 1 && r.Allowed[0] == "final_answer" {
				return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "final_answer", Args: invoice{From: "ACME"}}}}
			}
			return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "get_weather", Args: place{"Lisbon"}}}}
		})
		fake.Generation = generation
		a := newAgent(t, countersign.Options{MaxModelCalls: 3, Tools: []*countersign.Tool{getWeather},
			Provider: countersign.Gemini(countersign.GeminiConfig{APIKey: "k", BaseURL: newServer(t, fake)})})
		s := a.NewSession()
		for range 2 { // and once more in the same session
			v, _, err := countersign.SendAs[invoice](t.Context(), s, "What is it?")
			if err != nil || v.From != "ACME" || len(fake.Refused()) > 0 {
				t.Errorf("%v %+v %q", err, v, fake.Refused())
			}
		}
	}
}

// TestInstructionsFunc asks once for each session, and has a run keep what it began with.
func TestInstructionsFunc(t *testing.T) {
	asked, st := map[string]int{}, openStore(t)
	p := &post{}
	options := func(m scripted, say string) countersign.Options {
		return countersign.Options{Provider: m, Store: st, Tools: p.tools(),
			InstructionsFunc: func(_ context.Context, s *countersign.SessionContext) (string, error) {
				asked[s.SessionID]++
				if say == "" {
					return "", errors.New("no notes")
				}
				return say + " to " + s.User, nil
			}}
	}
	m := newScript(say("Hello."), mailTo("a@x.com"))
	first := newAgent(t, options(m, "Be kind"))
	s := first.As("ana").NewSession()
	for range 2 {
		if _, err := s.Send(t.Context(), "hi"); err != nil {
			t.Fatal(err)
		}
	}
	if asked[s.ID()] != 1 || m.Requests()[1].System != "Be kind to ana" {
		t.Errorf("asked %v, told %q", asked, m.Requests()[1].System)
	}
	again, err := first.As("ana").Resume(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Send(t.Context(), "more"); err == nil || asked[s.ID()] != 1 {
		t.Errorf("%v, asked %v of the same session", err, asked)
	}
	later := newScript(say("So."))
	second := newAgent(t, options(later, "Be harsh"))
	for ap, err := range second.As("ana").Approvals(t.Context()) {
		if err != nil || second.As("ana").Resolve(t.Context(), ap, countersign.Yes()) != nil {
			t.Fatal(err)
		}
	}
	s, err = second.As("ana").Resume(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := told(s.Continue(t.Context())); err != nil ||
		!strings.HasPrefix(later.Requests()[0].System, "Be kind to ana") {
		t.Errorf("%v, told %q", err, later.Requests()[0].System)
	}
	failing := newAgent(t, options(later, ""))
	if res, err := failing.NewSession().Send(t.Context(), "hi"); err == nil || res != nil {
		t.Errorf("%v %+v; want an error, res nil", err, res)
	}
}

// TestToolsOfARun keeps the tools that a run began with, though a later process has more.
func TestToolsOfARun(t *testing.T) {
	st, p := openStore(t), &post{}
	first := newAgent(t, countersign.Options{Provider: newScript(mailTo("a@x.com")), Store: st, Tools: p.tools()})
	s := first.NewSession()
	if _, err := s.Send(t.Context(), "hi"); err != nil {
		t.Fatal(err)
	}
	m := newScript(say("So."), say("And so."))
	more := newAgent(t, countersign.Options{Provider: m, Store: st, Tools: append(p.tools(), getWeather),
		Approve: func(context.Context, countersign.Approval) (countersign.Decision, error) {
			return countersign.Yes(), nil
		}})
	s, err := more.Resume(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := told(s.Continue(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(t.Context(), "and now?"); err != nil {
		t.Fatal(err)
	}
	if got := names(m.Requests()[0]) + "; " + names(m.Requests()[1]); got != "send_mail; get_weather send_mail" {
		t.Error(got)
	}
}

func names(req model.Request) string {
	var all []string
	for _, s := range req.Tools {
		all = append(all, s.Name)
	}
	return strings.Join(all, " ")
}
