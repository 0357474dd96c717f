package countersign_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// failure is an error of a program, which holds a secret.
type failure struct{ dsn string }

func (e *failure) Error() string { return "cannot connect to " + e.dsn }

// unwritable is a result whose encoding fails.
type unwritable struct{ err error }

func (u unwritable) MarshalJSON() ([]byte, error) { return nil, u.err }

// TestErrorsOfOptions has Send, SendStream and Continue return an error of the program's own functions unchanged, and
// keeps it out of the log and the store.
func TestErrorsOfOptions(t *testing.T) {
	own := &failure{"postgres://u:hunter2@10.0.0.1"}
	for _, err := range []error{own, fmt.Errorf("today: %w", own), errors.Join(own, context.Canceled)} {
		for name, o := range map[string]countersign.Options{
			"InstructionsFunc": {InstructionsFunc: func(context.Context, *countersign.SessionContext) (string, error) {
				return "", err
			}},
			"Approve": {Approve: func(context.Context, countersign.Approval) (countersign.Decision, error) {
				return countersign.Yes(), err
			}},
		} {
			var log bytes.Buffer
			o.Provider = newScript(call("mail", map[string]any{"city": "Porto"}))
			o.Tools = []*countersign.Tool{notify(func() (any, error) { return "sent", nil })}
			o.Logger, o.Debug = slog.New(slog.NewTextHandler(&log, nil)), true
			s := newAgent(t, o).NewSession()
			if _, got := s.Send(t.Context(), "go"); got != err {
				t.Errorf("%s: Send returns %v", name, got)
			}
			for _, got := range s.Continue(t.Context()) {
				if got != nil && got != err && !errors.Is(got, countersign.ErrNoSession) {
					t.Errorf("%s: Continue yields %v", name, got)
				}
			}
			var stored bytes.Buffer
			if err := s.Export(t.Context(), &stored); err != nil && !errors.Is(err, countersign.ErrNoSession) {
				t.Error(err)
			}
			if text := log.String() + stored.String(); strings.Contains(text, "hunter2") {
				t.Errorf("%s: the secret is in %s", name, text)
			}
		}
	}
}

// notify is an effect whose action is f.
func notify(f func() (any, error)) *countersign.Tool {
	return countersign.DefineEffect(
		countersign.EffectConfig[place, any]{Name: "mail", Description: "It mails."},
		func(place) countersign.Preview { return countersign.Preview{Title: "Mail"} },
		func(context.Context, *countersign.SessionContext, place) (any, error) { return f() })
}

// TestErrorsOfResults reports a result without a form in JSON with the words of its own encoding, of a tool and of an
// effect.
func TestErrorsOfResults(t *testing.T) {
	own := &failure{"postgres://u:hunter2@10.0.0.1"}
	for name, c := range map[string]struct {
		result any
		words  string
		is     bool
	}{
		"its own encoding": {unwritable{own}, own.Error(), true},
		"no number":        {math.NaN(), "NaN", false},
	} {
		look := countersign.DefineTool(countersign.ToolConfig{Name: "mail", Description: "It looks."},
			func(context.Context, *countersign.SessionContext, place) (any, error) { return c.result, nil })
		for kind, tool := range map[string]*countersign.Tool{"tool": look,
			"effect": notify(func() (any, error) { return c.result, nil })} {
			m := newScript(script.Turn{Calls: []script.Call{{Name: "mail", Args: place{"Porto"}}}}, say("Well."))
			a := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{tool},
				Effects: countersign.AutoApprove})
			var very error
			for ev, err := range a.NewSession().SendStream(t.Context(), "go") {
				if err != nil {
					t.Fatal(err)
				}
				if f, ok := ev.(*countersign.ToolFinished); ok {
					very = f.Err
				}
			}
			if very == nil || !strings.Contains(very.Error(), c.words) || c.is != errors.Is(very, own) {
				t.Errorf("%s of a %s: the program gets %v", name, kind, very)
			}
			if hears := string(m.Requests()[1].Contents[2]); strings.Contains(hears, "hunter2") {
				t.Errorf("the model hears %s", hears)
			}
		}
	}
}
