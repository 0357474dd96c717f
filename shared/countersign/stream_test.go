package countersign_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// told returns what a stream yields, a line for each event, and its error.
func told(events func(func(countersign.Event, error) bool)) (lines []string, failed error) {
	for ev, err := range events {
		if failed != nil {
			lines = append(lines, "something behind the error")
		}
		if failed = err; err == nil {
			lines = append(lines, line(ev))
		}
	}
	return lines, failed
}

func line(ev countersign.Event) string {
	switch ev := ev.(type) {
	case *countersign.Text:
		return "text " + ev.Delta
	case *countersign.ToolStarted:
		return fmt.Sprintf("%d %s %s starts", ev.Seq, ev.Tool, ev.Args)
	case *countersign.ToolFinished:
		return fmt.Sprintf("%d %s %s, %v, cut %t", ev.Seq, ev.Tool, ev.Result, ev.Err, ev.Truncated)
	case *countersign.Asked:
		return fmt.Sprintf("%d asked: %s", ev.Seq, ev.Approval.Preview.Title)
	case *countersign.Finished:
		return fmt.Sprintf("%s %q", ev.Status, ev.Text)
	}
	return fmt.Sprintf("%T", ev)
}

func check(t *testing.T, got []string, want ...string) {
	t.Helper()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\n\nwant\n%s", g, w)
	}
}

func TestStream(t *testing.T) {
	m := newScript(script.Turn{Text: "Let me see.", Calls: []script.Call{
		{Name: "get_weather", Args: map[string]any{"city": "Porto"}},
		{Name: "get_weather", Args: map[string]any{"city": "Lisbon"}},
		{Name: "get_weather", Args: map[string]any{"town": "Lisbon"}}}}, say("21 degrees."))
	a := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{getWeather}})
	lines, err := told(joined(a.NewSession().SendStream(t.Context(), "How is Lisbon?")))
	if err != nil {
		t.Fatal(err)
	}
	check(t, lines,
		`text Let me see.`,
		`7 get_weather , ValidationError invalid (town): unknown field, cut false`,
		`0 get_weather {"city":"Porto"} starts`,
		`9 get_weather , no station in Porto, cut false`,
		`0 get_weather {"city":"Lisbon"} starts`,
		`10 get_weather {"celsius":21}, <nil>, cut false`,
		`text 21 degrees.`,
		`completed "21 degrees."`)
}

// joined joins the pieces of text of a stream that come one after the other, as a slow reader would get them.
func joined(events func(func(countersign.Event, error) bool)) func(func(countersign.Event, error) bool) {
	return func(yield func(countersign.Event, error) bool) {
		text := ""
		for ev, err := range events {
			if piece, ok := ev.(*countersign.Text); ok {
				text += piece.Delta
				continue
			}
			if text != "" && !yield(&countersign.Text{Delta: text}, nil) {
				return
			}
			if text = ""; !yield(ev, err) {
				return
			}
		}
	}
}

// TestStreamToolError follows an error of a tool to the program, while the model hears what it may.
func TestStreamToolError(t *testing.T) {
	own := fmt.Errorf("at dsn postgres://u:secret@h: %w", io.ErrUnexpectedEOF)
	for name, c := range map[string]struct {
		config countersign.ToolConfig
		err    error
		hears  string
	}{
		"any other":         {err: own, hears: "The tool failed."},
		"all are sent":      {config: countersign.ToolConfig{SendErrorsToModel: true}, err: own, hears: own.Error()},
		"a ToolError":       {err: countersign.ToolErrorf("no <b>: %w", io.EOF), hears: "no <b>: EOF"},
		"a wrapped one":     {err: fmt.Errorf("far: %w", countersign.ToolErrorf("near")), hears: "near"},
		"an end of context": {err: context.DeadlineExceeded, hears: "The tool failed."},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.Name, c.config.Description = "fail", "Fails."
			m := newScript(script.Turn{Calls: []script.Call{{Name: "fail"}}}, say("Well."))
			fail := countersign.DefineTool(c.config,
				func(context.Context, *countersign.SessionContext, struct{}) (string, error) { return "", c.err })
			a := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{fail}})
			var very error
			for ev, err := range a.NewSession().SendStream(t.Context(), "go") {
				if err != nil {
					t.Fatal(err)
				}
				if f, ok := ev.(*countersign.ToolFinished); ok {
					very = f.Err
				}
			}
			if very != c.err {
				t.Errorf("the program gets %v", very)
			}
			hears := string(m.Requests()[1].Contents[2])
			if !strings.Contains(hears, `"error":"`+c.hears+`"`) {
				t.Errorf("the model hears %s", hears)
			}
		})
	}
}

// hangs is a turn whose answer comes when its context ends.
func hangs(text string) script.Turn {
	return script.Turn{Text: text, Hook: func(ctx context.Context, _ model.Request) { <-ctx.Done() }}
}

// TestLeaving leaves a stream in each way and in each step. Nothing is yielded afterwards, the interrupted step is
// finished or repeated, and Continue continues in another process.
func TestLeaving(t *testing.T) {
	leaving := map[string]func(ctx context.Context, cancel func(), s *countersign.Session) error{
		"break": func(ctx context.Context, _ func(), s *countersign.Session) error {
			for ev, err := range s.SendStream(ctx, "go") {
				switch ev.(type) {
				case *countersign.ToolStarted, *countersign.Text:
					return nil
				}
				if err != nil {
					return err
				}
			}
			return errors.New("nothing came")
		},
		"cancel": func(ctx context.Context, cancel func(), s *countersign.Session) error {
			time.AfterFunc(time.Second, cancel)
			_, err := told(s.SendStream(ctx, "go"))
			if !errors.Is(err, context.Canceled) {
				return fmt.Errorf("the error is %w", err)
			}
			return nil
		},
		"a deadline": func(ctx context.Context, _ func(), s *countersign.Session) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if res, err := s.Send(ctx, "go"); !errors.Is(err, context.DeadlineExceeded) || res == nil {
				return fmt.Errorf("%+v, the error is %w", res, err)
			}
			return nil
		},
		"cancel a Send": func(ctx context.Context, cancel func(), s *countersign.Session) error {
			time.AfterFunc(time.Second, cancel)
			res, err := s.Send(ctx, "go")
			if !errors.Is(err, context.Canceled) || res == nil || res.Status != countersign.CutOff {
				return fmt.Errorf("%+v, the error is %w", res, err)
			}
			return nil
		},
	}
	for way, leave := range leaving {
		for step, turn := range map[string]script.Turn{
			"the model": hangs("never heard"),
			"a call":    {Calls: []script.Call{{Name: "look"}}},
			"an effect": {Calls: []script.Call{{Name: "act"}}},
		} {
			t.Run(way+" in "+step, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					done := map[string]int{}
					tools := slowTools(done)
					if step == "the model" && way == "break" {
						turn = say("A word. And so on.")
					}
					m := newScript(turn)
					a := newAgent(t, countersign.Options{Provider: m, Tools: tools, Effects: countersign.AutoApprove})
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					s := a.NewSession()
					if err := leave(ctx, cancel, s); err != nil {
						t.Fatal(err)
					}
					if step == "the model" && way == "break" { // its answer may have been there already
						return
					}
					m.Restart(say("Well."))
					lines, err := told(s.Continue(t.Context()))
					if err != nil || lines[len(lines)-1] != `completed "Well."` {
						t.Fatalf("%v %q; want lines[len(lines)-1] %q", err, lines, `completed "Well."`)
					}
					want := map[string]int{"the model": 0, "a call": 1, "an effect": 1}[step]
					if n := done["look"] + done["act"]; n != want {
						t.Errorf("done %v", done)
					}
				})
			})
		}
	}
}

// slowTools are a tool that can be cut short and an effect that cannot, each of ten seconds.
func slowTools(done map[string]int) []*countersign.Tool {
	look := countersign.DefineTool(countersign.ToolConfig{Name: "look", Description: "Looks."},
		func(ctx context.Context, _ *countersign.SessionContext, _ struct{}) (string, error) {
			select {
			case <-time.After(10 * time.Second):
				done["look"]++
				return "seen", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})
	act := countersign.DefineEffect(countersign.EffectConfig[struct{}, string]{Name: "act", Description: "Acts."},
		func(struct{}) countersign.Preview { return countersign.Preview{Title: "Act"} },
		func(ctx context.Context, _ *countersign.SessionContext, _ struct{}) (string, error) {
			time.Sleep(10 * time.Second)
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			done["act"]++
			return "done", nil
		})
	return []*countersign.Tool{look, act}
}

// TestStreamSlowBody reads a stream ten minutes an event, over many answers. No lease, no connection and no call waits
// for it, and no more than one answer is held.
func TestStreamSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m scripted
		taken := 0
		var turns []script.Turn
		for n := range 5 {
			turn := call("get_weather", map[string]any{"city": "Lisbon"})
			turn.Text = fmt.Sprintf("step %d and so on", n)
			turn.Hook = func(context.Context, model.Request) {
				if taken < n {
					t.Errorf("answer %d is asked for when %d were taken", n+1, taken)
				}
			}
			turns = append(turns, turn)
		}
		m = newScript(append(turns, say("Done now."))...)
		a := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{getWeather}})
		var lines []string
		text := ""
		for ev, err := range a.NewSession().SendStream(t.Context(), "go") {
			if err != nil {
				t.Fatal(err)
			}
			if piece, ok := ev.(*countersign.Text); ok {
				text += piece.Delta + "|"
			}
			lines = append(lines, line(ev))
			time.Sleep(10 * time.Minute)
			if _, ok := ev.(*countersign.ToolFinished); ok {
				taken++
			}
		}
		// of each answer's words at most the first is yielded before the others come, which are joined
		const all = "step 0 and so onstep 1 and so onstep 2 and so onstep 3 and so onstep 4 and so onDone now."
		if strings.Count(text, "|") > 12 || strings.ReplaceAll(text, "|", "") != all ||
			lines[len(lines)-1] != `completed "Done now."` {
			t.Errorf("%d events: %q", len(lines), lines)
		}
	})
}

// TestMisuse says at once what cannot be.
func TestMisuse(t *testing.T) {
	m := newScript(say("Hello."), say("Hello."))
	a := newAgent(t, countersign.Options{Provider: m})
	s := a.NewSession()
	if _, err := s.Send(t.Context(), "hi"); err != nil {
		t.Fatal(err)
	}
	stream := s.SendStream(t.Context(), "hi")
	if _, err := told(stream); err != nil {
		t.Fatal(err)
	}
	_, again := told(stream)
	_, unknown := a.Resume(t.Context(), "aaaaaaaaaaaaaaaaaaaaaaaaaa")
	_, another := a.As("ana").Resume(t.Context(), s.ID())
	_, noID := a.Resume(t.Context(), "../x")
	_, empty := s.Send(t.Context(), " \n")
	_, long := s.Send(t.Context(), strings.Repeat("x", 256<<10+1))
	_, user := a.As("a/b").NewSession().Send(t.Context(), "hi")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	_, closed := s.Send(t.Context(), "hi")
	_, closedStream := told(s.SendStream(t.Context(), "hi"))
	_, closedResume := a.Resume(t.Context(), s.ID())
	var e *countersign.Error
	for name, c := range map[string]struct {
		err  error
		is   error
		code string
	}{
		"ranged twice": {again, nil, "stream_used"}, "unknown": {unknown, countersign.ErrNoSession, ""},
		"another user's": {another, countersign.ErrNoSession, ""}, "no id": {noID, countersign.ErrNoSession, ""},
		"empty": {empty, nil, "invalid"}, "too long": {long, nil, "invalid"}, "a user": {user, nil, "invalid"},
		"closed": {closed, countersign.ErrClosed, ""}, "closed stream": {closedStream, countersign.ErrClosed, ""},
		"closed resume": {closedResume, countersign.ErrClosed, ""},
	} {
		if c.is != nil && !errors.Is(c.err, c.is) || c.code != "" && (!errors.As(c.err, &e) || e.Code != c.code) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

// TestDeadline completes a run of several steps within a ctx that is shorter than one call of the model may be.
func TestDeadline(t *testing.T) {
	a := newAgent(t, countersign.Options{Tools: []*countersign.Tool{getWeather},
		Provider: newScript(call("get_weather", map[string]any{"city": "Lisbon"}), say("21 degrees."))})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if res, err := a.NewSession().Send(ctx, "go"); err != nil || res.Status != countersign.Completed {
		t.Errorf("%v %+v; want res.Status %v", err, res, countersign.Completed)
	}
}

// TestCancel cancels a run concurrently, in the middle of each step: the model's call stops, an effect finishes.
func TestCancel(t *testing.T) {
	for step, turn := range map[string]script.Turn{"the model": hangs("never heard"),
		"a call": {Calls: []script.Call{{Name: "look"}}}, "an effect": {Calls: []script.Call{{Name: "act"}}}} {
		t.Run(step, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				done := map[string]int{}
				a := newAgent(t, countersign.Options{Provider: newScript(turn, say("Next.")), Tools: slowTools(done),
					Effects: countersign.AutoApprove})
				s, began := a.NewSession(), time.Now()
				time.AfterFunc(time.Second, func() {
					if err := s.Cancel(t.Context()); err != nil {
						t.Error(err)
					}
				})
				res, err := s.Send(t.Context(), "go")
				var e *countersign.Error
				if !errors.As(err, &e) || e.Code != "cancelled" || res.Status != countersign.Failed {
					t.Fatalf("%v %+v", err, res)
				}
				if took := time.Since(began); (took > 5*time.Second) != (step == "an effect") || done["look"] != 0 {
					t.Errorf("it took %s, done %v", took, done)
				}
				res, err = s.Send(t.Context(), "and now?")
				if step == "the model" && (err != nil || res.Text != "Next.") {
					t.Errorf("%v %+v", err, res)
				}
			})
		})
	}
}
