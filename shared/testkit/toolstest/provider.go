package toolstest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// A Provider is a test's view of the service in which a tool acts.
type Provider struct {
	Tool    *tool.Tool
	Call    tool.Call                                     // its arguments are normalized
	Break   func(op string, faults ...fakegoogle.Fault)   // makes the next calls of an operation fail, in order
	Calls   func(op string) int                           // how often it was called
	Effects func() int                                    // the number of effects
	Result  func(t *testing.T, completed json.RawMessage) // checks the result of a completed call; may be nil

	current *Expiring // of the call that is under way
}

// during returns the context of the next call to the tool. The call ends when the provider hangs.
func (p *Provider) during(t *testing.T) context.Context {
	e := NewExpiring(t.Context())
	p.current = e
	return e
}

// fail makes the next calls of an operation fail, in order, with a text that no message may repeat.
func (p *Provider) fail(op string, faults ...fakegoogle.Fault) {
	faults = slices.Clone(faults)
	for i := range faults {
		faults[i].Text += "Bearer " + secret
		faults[i].Hung = func() { p.current.Expire() }
	}
	p.Break(op, faults...)
}

// secret is part of each answer of a provider with a fault.
const secret = "ya29.SECRET"

// CarryOut runs the call as the loop does: it prepares, records the handle, and executes. After an unknown outcome it
// reconciles before anything else.
func (p *Provider) CarryOut(t *testing.T) (End, json.RawMessage, error) {
	t.Helper()
	if p.Tool.Prepares() && p.Call.Handle == "" {
		var err error
		for range tries {
			if p.Call.Handle, err = p.Tool.Prepare(p.during(t), p.Call); !tool.IsTransient(err) {
				break
			}
		}
		if err != nil {
			return Failed, nil, err
		}
	}
	underWay := false
	for try := 1; ; try++ {
		result, err := p.Tool.Execute(p.during(t), p.Call)
		switch {
		case err == nil:
			return Completed, result, nil
		case tool.IsAmbiguous(err):
			underWay = underWay || tool.IsUnanswered(err)
			if end, result := p.Reconcile(t); end != "" {
				return end, result, err
			}
		case !tool.IsTransient(err):
			try = tries
		}
		switch {
		case try == tries && underWay:
			return Review, nil, err
		case try == tries:
			return Failed, nil, err
		}
	}
}

// Reconcile asks for the call's outcome as the loop does. The end is empty if the call may be tried again.
func (p *Provider) Reconcile(t *testing.T) (End, json.RawMessage) {
	t.Helper()
	for range tries {
		out, err := p.Tool.Reconcile(p.during(t), p.Call)
		switch {
		case err != nil:
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the provider's words are repeated: %v", err)
			}
			continue
		case out.Verdict == tool.Done:
			return Completed, out.Result
		case out.Verdict == tool.NotDone:
			return "", nil
		case out.Verdict != tool.Unknown || out.Reason == "":
			t.Errorf("the outcome is %+v; an unknown one needs a reason", out)
		}
		return Review, nil
	}
	return Review, nil
}

// prepared returns the number of calls of the first operation, which creates the handle.
func (p *Provider) prepared(s Settling) int {
	if len(s.Acts) == 0 {
		return 0
	}
	return p.Calls(s.Acts[0])
}
