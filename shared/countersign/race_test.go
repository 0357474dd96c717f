package countersign_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

type words struct {
	Text string `json:"text"`
}

// TestSessionsConcurrently moves 64 sessions of 8 users on one agent at once, each with several runs, with concurrent
// calls, approvals, second Sends, lists and cancelled contexts. Each session gets its own answers, and each effect
// happens once.
func TestSessionsConcurrently(t *testing.T) {
	fake := fakegemini.New(func(r fakegemini.Request) fakegemini.Turn {
		if r.Responses() == nil {
			return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "note", Args: map[string]any{"text": r.User()}},
				{Name: "get_weather", Args: place{"Lisbon"}}}}
		}
		return fakegemini.Turn{Text: "noted " + r.User()}
	})
	server := newServer(t, fake)
	for name, c := range map[string]struct {
		options countersign.Options
		runs    int // of each session
	}{
		"memory": {countersign.Options{}, 2},
		"a file": {countersign.Options{Store: openStore(t)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var noted sync.Map
			var effects atomic.Int64
			note := countersign.DefineEffect(
				countersign.EffectConfig[words, string]{Name: "note", Description: "Notes."},
				func(in words) countersign.Preview { return countersign.Preview{Title: in.Text} },
				func(_ context.Context, s *countersign.SessionContext, in words) (string, error) {
					if _, twice := noted.LoadOrStore(s.ActionID, in.Text); twice {
						t.Errorf("twice: %s", in.Text)
					}
					effects.Add(1)
					return "noted", nil
				})
			o := c.options
			o.Provider = countersign.Gemini(countersign.GeminiConfig{APIKey: "k", BaseURL: server})
			o.Tools = []*countersign.Tool{note, getWeather}
			o.Approve = func(context.Context, countersign.Approval) (countersign.Decision, error) {
				return countersign.Yes(), nil
			}
			a := newAgent(t, o)
			var all sync.WaitGroup
			for n := range 64 {
				all.Go(func() { busy(t, a.As(fmt.Sprintf("user-%d", n%8)), n, c.runs) })
			}
			all.Wait()
			if n := effects.Load(); n != int64(64*c.runs) {
				t.Errorf("%d effects", n)
			}
			if refused := fake.Refused(); len(refused) > 0 {
				t.Errorf("refused: %q", refused)
			}
		})
	}
}

// busy runs a session's runs, with concurrent ones that are refused or cancelled.
func busy(t *testing.T, a *countersign.Agent, n, runs int) {
	s := a.NewSession()
	for i := range runs {
		prompt := fmt.Sprintf("session %d, run %d", n, i)
		var beside sync.WaitGroup
		started := make(chan struct{})
		beside.Go(func() {
			<-started
			var open *countersign.OpenError
			gone, cancel := context.WithCancel(context.Background())
			cancel()
			if _, err := s.Send(gone, prompt); err == nil {
				t.Error("a cancelled Send succeeds")
			} else if !errors.Is(err, context.Canceled) && !errors.As(err, &open) {
				t.Errorf("a second Send: %v", err)
			}
			for _, err := range a.Sessions(context.Background()) {
				if err != nil {
					t.Error(err)
				}
			}
		})
		text, err := streamed(s, prompt, started)
		beside.Wait()
		if want := "noted " + prompt; err != nil || text != want {
			t.Errorf("%s: %v %q; want text %v", prompt, err, text, want)
		}
	}
}

// streamed reads a run as a stream, and closes started at its first event.
func streamed(s *countersign.Session, prompt string, started chan struct{}) (text string, err error) {
	first := sync.OnceFunc(func() { close(started) })
	defer first()
	for ev, err := range s.SendStream(context.Background(), prompt) {
		first()
		if err != nil {
			return "", err
		}
		if done, ok := ev.(*countersign.Finished); ok {
			text = done.Text
		}
	}
	return text, nil
}
