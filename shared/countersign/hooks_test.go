package countersign_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// counted is an effect that counts its calls.
func counted(calls *int) *countersign.Tool {
	return notify(func() (any, error) {
		*calls++
		return "sent to Porto", nil
	})
}

func send(t *testing.T, s *countersign.Session, prompt string) *countersign.Result {
	t.Helper()
	res, err := s.Send(t.Context(), prompt)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestBeforeModelChange checks that a change reaches the model in that request alone, and that a tool can be
// taken away but not added.
func TestBeforeModelChange(t *testing.T) {
	m := newScript(say("Hello."), say("Again."))
	first := true
	s := newAgent(t, countersign.Options{Provider: m, Instructions: "Be kind.", Tools: []*countersign.Tool{getWeather},
		Hooks: countersign.Hooks{BeforeModel: func(_ context.Context, s *countersign.SessionContext,
			r *countersign.ModelRequest) error {
			if first && (s.SessionID == "" || s.User != "local" || !slices.Equal(r.Tools, []string{"get_weather"})) {
				t.Errorf("the hook gets the session %+v and the tools %q", s, r.Tools)
			}
			if first {
				r.Instructions += " Be brief."
				r.Contents[0] = json.RawMessage(strings.ReplaceAll(string(r.Contents[0]), "4111", "****"))
				r.Tools, r.MaxOutputTokens = []string{"another"}, 100
			}
			first = false
			return nil
		}}}).NewSession()
	send(t, s, "My card is 4111.")
	send(t, s, "And now?")
	asked := m.Requests()
	if r := asked[0]; r.System != "Be kind. Be brief." ||
		!strings.Contains(string(r.Contents[0]), "My card is ****.") || len(r.Tools) != 0 ||
		r.Settings.MaxOutputTokens != 100 {
		t.Errorf("the first request is %+v", r)
	}
	if r := asked[1]; r.System != "Be kind." || !strings.Contains(string(r.Contents[0]), "My card is 4111.") ||
		len(r.Tools) != 1 || r.Settings.MaxOutputTokens != 0 {
		t.Errorf("the second request is %+v", r)
	}
}

// TestModelHookErrors checks that Send returns the very error of a hook, that nothing is shown of an answer that
// AfterModel stopped, and that Continue asks again.
func TestModelHookErrors(t *testing.T) {
	own := &failure{"postgres://u:hunter2@10.0.0.1"}
	for name, asked := range map[string]int{"BeforeModel": 0, "AfterModel": 1} {
		t.Run(name, func(t *testing.T) {
			var wrong error = own
			var hooks countersign.Hooks
			if name == "BeforeModel" {
				hooks.BeforeModel = func(context.Context, *countersign.SessionContext,
					*countersign.ModelRequest) error {
					return wrong
				}
			} else {
				hooks.AfterModel = func(context.Context, *countersign.SessionContext, *countersign.ModelAnswer) error {
					return wrong
				}
			}
			m := newScript(append(slices.Repeat([]script.Turn{say("Stopped.")}, asked), say("Hello."))...)
			s := newAgent(t, countersign.Options{Provider: m, Hooks: hooks}).NewSession()
			var events []countersign.Event
			var got error
			for e, err := range s.SendStream(t.Context(), "hi") {
				if got = err; err == nil {
					events = append(events, e)
				}
			}
			if got != error(own) || len(events) > 0 || len(m.Requests()) != asked {
				t.Fatalf("got the error %v and the events %+v after %d requests", got, events, len(m.Requests()))
			}
			wrong = nil
			saysHello(t, s)
		})
	}
}

// saysHello continues the session, whose run ends with the text "Hello.".
func saysHello(t *testing.T, s *countersign.Session) {
	t.Helper()
	var last countersign.Event
	for e, err := range s.Continue(t.Context()) {
		if last = e; err != nil {
			t.Fatal(err)
		}
	}
	if end, ok := last.(*countersign.Finished); !ok || end.Text != "Hello." {
		t.Errorf("it ends with %+v", last)
	}
}

// TestBeforeModelErrorDuringCommit checks that the prompt is stored although a hook stops the model call that begins
// while the prompt's commit is under way.
func TestBeforeModelErrorDuringCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := faulty.Commits(func(ctx context.Context, _ *faulty.Call, next faulty.Next) error {
			time.Sleep(time.Second)
			if err := ctx.Err(); err != nil {
				return err
			}
			return next(ctx)
		})
		wrong := errors.New("not now")
		s := newAgent(t, countersign.Options{Provider: newScript(say("Hello.")),
			Store: faulty.Wrap(memory.New(time.Now), slow),
			Hooks: countersign.Hooks{BeforeModel: func(context.Context, *countersign.SessionContext,
				*countersign.ModelRequest) error {
				return wrong
			}}}).NewSession()
		if _, err := s.Send(t.Context(), "hi"); !errors.Is(err, wrong) {
			t.Fatalf("the hook stops it with %v", err)
		}
		wrong = nil
		saysHello(t, s)
	})
}

// TestAfterModelChange checks that the stream, the result and the next request have the changed text, and that
// the calls of an answer stay.
func TestAfterModelChange(t *testing.T) {
	m := newScript(script.Turn{Text: "I look at 4111.", Calls: []script.Call{{Name: "get_weather",
		Args: map[string]any{"city": "Lisbon"}}}}, say("It is 4111."), say("Yes."))
	var calls []countersign.CallInfo
	s := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{getWeather},
		Hooks: countersign.Hooks{AfterModel: func(_ context.Context, _ *countersign.SessionContext,
			a *countersign.ModelAnswer) error {
			a.Text = strings.ReplaceAll(a.Text, "4111", "****")
			calls = append(calls, a.Calls...)
			return nil
		}}}).NewSession()
	var text strings.Builder
	var end *countersign.Finished
	for e, err := range s.SendStream(t.Context(), "hi") {
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case *countersign.Text:
			text.WriteString(e.Delta)
		case *countersign.Finished:
			end = e
		}
	}
	if text.String() != "I look at ****.It is ****." || end == nil || end.Text != "It is ****." {
		t.Errorf("the stream has %q and ends with %+v", text.String(), end)
	}
	if len(calls) != 1 || calls[0].Tool != "get_weather" || calls[0].Effect ||
		string(calls[0].Args) != `{"city":"Lisbon"}` {
		t.Errorf("the hook sees the calls %+v", calls)
	}
	send(t, s, "Really?")
	told := asLines(m.Requests()[2].Contents)
	if strings.Contains(told, "4111") || !strings.Contains(told, "It is ****.") {
		t.Errorf("the model is later told\n%s", told)
	}
}

// finished returns how the calls of the prompt's run ended.
func finished(t *testing.T, s *countersign.Session) (all []*countersign.ToolFinished) {
	t.Helper()
	for e, err := range s.SendStream(t.Context(), "hi") {
		if err != nil {
			t.Fatal(err)
		}
		if f, ok := e.(*countersign.ToolFinished); ok {
			all = append(all, f)
		}
	}
	return all
}

// TestBeforeToolError checks that a call that the hook refuses does not run, even after a yes. The model reads
// the text of a ToolError, and nothing of another error.
func TestBeforeToolError(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		told string
	}{
		"with words for the model": {countersign.ToolErrorf("not on Sundays"), "not on Sundays"},
		"with another error":       {errors.New("dsn hunter2"), "The tool failed."},
	} {
		t.Run(name, func(t *testing.T) {
			var calls int
			var seen []countersign.CallInfo
			m := newScript(call("mail", map[string]any{"city": "Porto"}), say("It was not sent."))
			s := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{counted(&calls)},
				Approve: func(context.Context, countersign.Approval) (countersign.Decision, error) {
					return countersign.Yes(), nil
				},
				Hooks: countersign.Hooks{BeforeTool: func(_ context.Context, s *countersign.SessionContext,
					call countersign.CallInfo) error {
					if s.ActionID == "" || s.RunID == "" {
						t.Errorf("the hook gets the session %+v", s)
					}
					seen = append(seen, call)
					return c.err
				}}}).NewSession()
			ends := finished(t, s)
			if len(ends) != 1 || ends[0].Err != c.err || calls != 0 {
				t.Errorf("%d calls ran; they ended with %+v", calls, ends)
			}
			if len(seen) != 1 || seen[0].Tool != "mail" || !seen[0].Effect || string(seen[0].Args) != `{"city":"Porto"}` {
				t.Errorf("the hook was called for %+v", seen)
			}
			told := asLines(m.Requests()[1].Contents)
			if !strings.Contains(told, c.told) || strings.Contains(told, "hunter2") {
				t.Errorf("the model is told\n%s", told)
			}
		})
	}
}

// TestAfterTool checks that the changed result of a tool and of an effect is what the model reads, and that an error of
// the hook replaces the result of a call that ran once.
func TestAfterTool(t *testing.T) {
	wrong := countersign.ToolErrorf("withheld")
	for name, c := range map[string]struct {
		hook func(*countersign.ToolResult) error
		told string
		err  error
	}{
		"another result": {func(r *countersign.ToolResult) error {
			r.Result = json.RawMessage(`"hidden"`)
			return nil
		}, "hidden", nil},
		"an error": {func(*countersign.ToolResult) error { return wrong }, "", wrong},
		"no JSON": {func(r *countersign.ToolResult) error {
			r.Result = json.RawMessage(`{`)
			return nil
		}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var calls int
			m := newScript(call("mail", map[string]any{"city": "Porto"}), say("It was sent."))
			s := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{counted(&calls)},
				Effects: countersign.AutoApprove,
				Hooks: countersign.Hooks{AfterTool: func(_ context.Context, _ *countersign.SessionContext,
					call countersign.CallInfo, r *countersign.ToolResult) error {
					if call.Tool != "mail" || string(r.Result) != `"sent to Porto"` || r.Err != nil {
						t.Errorf("the hook gets %+v and %+v", call, r)
					}
					return c.hook(r)
				}}}).NewSession()
			ends := finished(t, s)
			if len(ends) != 1 || calls != 1 || c.err != nil && ends[0].Err != c.err {
				t.Fatalf("%d calls ran; they ended with %+v", calls, ends)
			}
			if told := asLines(m.Requests()[1].Contents); strings.Contains(told, "sent to Porto") ||
				!strings.Contains(told, c.told) {
				t.Errorf("the model is told\n%s", told)
			}
		})
	}
}

// TestAfterToolErrors checks that the hook sees the error of a tool and cannot remove it, and that its own error is
// joined to it.
func TestAfterToolErrors(t *testing.T) {
	own := &failure{"postgres://u:hunter2@10.0.0.1"}
	look := countersign.DefineTool(countersign.ToolConfig{Name: "mail", Description: "It looks."},
		func(context.Context, *countersign.SessionContext, place) (any, error) { return nil, own })
	var seen error
	another := errors.New("another")
	s := newAgent(t, countersign.Options{Tools: []*countersign.Tool{look},
		Provider: newScript(call("mail", map[string]any{"city": "Porto"}), say("It failed.")),
		Hooks: countersign.Hooks{AfterTool: func(_ context.Context, _ *countersign.SessionContext,
			_ countersign.CallInfo, r *countersign.ToolResult) error {
			seen, r.Err, r.Result = r.Err, nil, json.RawMessage(`"all is well"`)
			return another
		}}}).NewSession()
	ends := finished(t, s)
	if len(ends) != 1 || !errors.Is(ends[0].Err, own) || !errors.Is(ends[0].Err, another) || ends[0].Result != nil ||
		seen != error(own) {
		t.Errorf("the hook saw %v; the call ended with %+v", seen, ends)
	}
}

// TestBeforeModelWithForcedTool checks that a hook that takes all tools away leaves the one that the last request of
// a typed answer must call.
func TestBeforeModelWithForcedTool(t *testing.T) {
	m := newScript(call("final_answer", map[string]any{"value": 4}))
	s := newAgent(t, countersign.Options{Provider: m, MaxModelCalls: 1, Tools: []*countersign.Tool{getWeather},
		Hooks: countersign.Hooks{BeforeModel: func(_ context.Context, _ *countersign.SessionContext,
			r *countersign.ModelRequest) error {
			r.Tools, r.MaxOutputTokens = nil, 1<<40
			return nil
		}}}).NewSession()
	if v, _, err := countersign.SendAs[int](t.Context(), s, "How many?"); err != nil || v != 4 {
		t.Errorf("the answer is %d, %v", v, err)
	}
	if r := m.Requests()[0]; toolNames(r) != "final_answer" || r.Settings.MaxOutputTokens != 1<<20 {
		t.Errorf("the request has the tools %q and the settings %+v", toolNames(r), r.Settings)
	}
}

// TestHookPanics has hooks that panic. The program continues: Send returns the error, or the call fails. The error or
// the log has the place.
func TestHookPanics(t *testing.T) {
	for name, hooks := range map[string]countersign.Hooks{
		"BeforeModel": {BeforeModel: func(context.Context, *countersign.SessionContext,
			*countersign.ModelRequest) error {
			panic("hunter2")
		}},
		"AfterModel": {AfterModel: func(context.Context, *countersign.SessionContext, *countersign.ModelAnswer) error {
			panic("hunter2")
		}},
		"BeforeTool": {BeforeTool: func(context.Context, *countersign.SessionContext, countersign.CallInfo) error {
			panic("hunter2")
		}},
		"AfterTool": {AfterTool: func(context.Context, *countersign.SessionContext, countersign.CallInfo,
			*countersign.ToolResult) error {
			panic("hunter2")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			m := newScript(call("get_weather", map[string]any{"city": "Lisbon"}), say("So."))
			s := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{getWeather}, Hooks: hooks,
				LogLevel: "error", Logger: slog.New(slog.NewTextHandler(&log, nil))}).NewSession()
			res, err := s.Send(t.Context(), "How is Lisbon?")
			if strings.HasSuffix(name, "Model") == (err == nil) {
				t.Errorf("%+v, %v", res, err)
			}
			all := fmt.Sprint(err, log.String(), m.Requests())
			if !strings.Contains(all, "hooks_test.go") || strings.Contains(all, "hunter2") {
				t.Errorf("the error is %v; the log has %s", err, log.String())
			}
			if last := m.Requests(); len(last) == 2 && strings.Contains(asLines(last[1].Contents), "hooks_test.go") {
				t.Errorf("the model reads %s", asLines(last[1].Contents))
			}
		})
	}
}

// TestHookPanicsAtEffect checks that an effect has not happened if BeforeTool panics, and has if AfterTool does.
func TestHookPanicsAtEffect(t *testing.T) {
	for want, hooks := range []countersign.Hooks{
		{BeforeTool: func(context.Context, *countersign.SessionContext, countersign.CallInfo) error { panic("boom") }},
		{AfterTool: func(context.Context, *countersign.SessionContext, countersign.CallInfo,
			*countersign.ToolResult) error {
			panic("boom")
		}},
	} {
		calls := 0
		m := newScript(call("mail", map[string]any{"city": "Porto"}), say("So."))
		res := send(t, newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{counted(&calls)},
			Effects: countersign.AutoApprove, Hooks: hooks}).NewSession(), "go")
		if calls != want || res.Status != countersign.Completed {
			t.Errorf("%d calls, %+v; want %d", calls, res, want)
		}
	}
}

// TestHookKeepsArguments has hooks that write into the arguments of a call and into the contents of a request. The call
// runs with the approved ones, and the session keeps its contents.
func TestHookKeepsArguments(t *testing.T) {
	spoil := func(all ...json.RawMessage) error {
		for _, raw := range all {
			copy(raw, bytes.ReplaceAll(raw, []byte("Porto"), []byte("Paris")))
		}
		return nil
	}
	var city string
	mail := countersign.DefineEffect(countersign.EffectConfig[place, string]{Name: "mail", Description: "It mails."},
		func(place) countersign.Preview { return countersign.Preview{Title: "Mail"} },
		func(_ context.Context, _ *countersign.SessionContext, in place) (string, error) {
			city = in.City
			return "sent", nil
		})
	m := newScript(call("mail", map[string]any{"city": "Porto"}), say("Sent."), say("Again."))
	s := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{mail},
		Effects: countersign.AutoApprove, Hooks: countersign.Hooks{
			BeforeModel: func(_ context.Context, _ *countersign.SessionContext, r *countersign.ModelRequest) error {
				return spoil(r.Contents...)
			},
			AfterModel: func(_ context.Context, _ *countersign.SessionContext, a *countersign.ModelAnswer) error {
				for _, c := range a.Calls {
					_ = spoil(c.Args)
				}
				return nil
			},
			BeforeTool: func(_ context.Context, _ *countersign.SessionContext, c countersign.CallInfo) error {
				return spoil(c.Args)
			},
			AfterTool: func(_ context.Context, _ *countersign.SessionContext, c countersign.CallInfo,
				_ *countersign.ToolResult) error {
				return spoil(c.Args)
			}}}).NewSession()
	send(t, s, "Write to Porto.")
	if city != "Porto" {
		t.Errorf("the call runs for %s; want Porto", city)
	}
	messages, err := s.Messages(t.Context())
	if b, _ := json.Marshal(messages); err != nil || bytes.Contains(b, []byte("Paris")) {
		t.Errorf("the session has %s, %v", b, err)
	}
}
