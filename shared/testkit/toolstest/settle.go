package toolstest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
	"github.com/countersign-run/countersign/shared/tool"
)

// A Settling is a tool with an effect, and the provider that has it: whatever the provider does, the effect takes place
// at most once, a call that is said to be completed had it, and one that is said to have failed did not.
type Settling struct {
	Open func(t *testing.T) *Provider // a fresh provider without faults
	// Broken is the same tool with a provider whose client panics with the value "CANARY".
	Broken *tool.Tool

	Acts  []string // the operations of a call that goes well, in order; the last one has the effect
	Looks []string // the operations that only settle
	// Rereads says that the first operation is also part of what comes after the handle, which it makes by reading.
	Rereads bool
	// Absence says that the effect is that something is not there: whoever says so is believed.
	Absence bool
	Cases   map[string]Settled // what becomes of a call, by name
}

// A Provider is the service in which a tool acts, as its test sees it.
type Provider struct {
	Tool    *tool.Tool
	Call    tool.Call                                     // its arguments are normalized
	Break   func(op string, faults ...fakegoogle.Fault)   // makes the next calls of an operation fail, in order
	Calls   func(op string) int                           // how often it was called
	Effects func() int                                    // how many there are
	Result  func(t *testing.T, completed json.RawMessage) // checks the result of a completed call; may be nil
}

// Settled is what becomes of a call when operations fail.
type Settled struct {
	Faults  map[string][]fakegoogle.Fault
	Want    End
	Effects int
	Class   fault.Class // of the error, with its code; empty: not checked
	Code    fault.Code
	Asked   map[string]int // how often operations were called, where that matters
}

// After returns the case in which the calls of the operation fail, in order.
func (s Settled) After(op string, faults ...fakegoogle.Fault) Settled {
	all := maps.Clone(s.Faults)
	if all == nil {
		all = map[string][]fakegoogle.Fault{}
	}
	all[op] = faults
	s.Faults = all
	return s
}

// End is what became of a call.
type End string

// The ends of a call.
const (
	Completed End = "completed"
	Failed    End = "failed"
	Review    End = "needs_review"
)

// tries is how often the loop tries a call, and asks for its outcome.
const tries = 3

// secret stands in each answer of a provider with a fault.
const secret = "ya29.SECRET"

// CarryOut carries the call out as the loop does: it prepares and records the handle, executes, and after an unclear
// outcome reconciles before anything else.
func (p *Provider) CarryOut(t *testing.T) (End, json.RawMessage, error) {
	t.Helper()
	if p.Tool.Prepares() && p.Call.Handle == "" {
		var err error
		for range tries {
			if p.Call.Handle, err = p.Tool.Prepare(t.Context(), p.Call); !tool.IsTransient(err) {
				break
			}
		}
		if err != nil {
			return Failed, nil, err
		}
	}
	underWay := false
	for try := 1; ; try++ {
		result, err := p.Tool.Execute(t.Context(), p.Call)
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

// Reconcile asks for the call's outcome as the loop does. The end is empty where it may be tried again.
func (p *Provider) Reconcile(t *testing.T) (End, json.RawMessage) {
	t.Helper()
	for range tries {
		out, err := p.Tool.Reconcile(t.Context(), p.Call)
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

// Run runs the suite.
func (s Settling) Run(t *testing.T) {
	t.Run("cases", s.settlesCases)
	t.Run("every fault", s.settlesAll)
	t.Run("a crash", s.survives)
	t.Run("a place", s.staysInPlace)
	t.Run("a panic", s.recovers)
}

func (s Settling) settlesCases(t *testing.T) {
	for name, c := range s.Cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := s.Open(t)
			end, err := s.settle(t, p, c.Faults)
			if end != c.Want || p.Effects() != c.Effects {
				t.Errorf("%s with %d effects (%v); want %s with %d", end, p.Effects(), err, c.Want, c.Effects)
			}
			if c.Class != "" && !fault.Is(err, c.Class, c.Code) {
				t.Errorf("the error is %v; want %s %s", err, c.Class, c.Code)
			}
			for op, n := range c.Asked {
				if p.Calls(op) != n {
					t.Errorf("%s was called %d times; want %d", op, p.Calls(op), n)
				}
			}
		})
	}
}

// settle carries the call out with faults, and checks what must hold whatever they are.
func (s Settling) settle(t *testing.T, p *Provider, faults map[string][]fakegoogle.Fault) (End, error) {
	t.Helper()
	for op, list := range faults {
		list = slices.Clone(list)
		for i := range list {
			list[i].Text += "Bearer " + secret
		}
		p.Break(op, list...)
	}
	end, result, err := p.CarryOut(t)
	s.holds(t, p, end, result, err)
	for op := range faults {
		if p.Calls(op) == 0 {
			t.Errorf("%s was never called, so that its fault proves nothing", op)
		}
	}
	return end, err
}

// holds checks that the end is true, and that the error repeats nothing that the provider said.
func (s Settling) holds(t *testing.T, p *Provider, end End, result json.RawMessage, err error) {
	t.Helper()
	effects := p.Effects()
	if effects > 1 || end == Completed && effects != 1 || end == Failed && effects != 0 {
		t.Errorf("it is %s with %d effects: %v", end, effects, err)
	}
	if tool.IsPanic(err) {
		t.Errorf("it panics: %v", err)
	}
	if end == Completed && p.Result != nil {
		p.Result(t, result)
	}
	if strings.Contains(string(result), secret) {
		t.Errorf("the provider's words are the result: %s", result)
	}
	if err == nil {
		return
	}
	var e *fault.Error
	if !errors.As(err, &e) && !tool.IsAmbiguous(err) { // its user is told that the outcome is not known
		t.Errorf("the error is none of the five classes: %v", err)
	}
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		if strings.Contains(cause.Error(), secret) {
			t.Errorf("the provider's words are repeated: %v", cause)
		}
	}
}

// everyFault is each way in which an operation can fail.
var everyFault = map[string]fakegoogle.Fault{
	"400": {Kind: fakegoogle.StatusBefore, Status: 400, Reason: "invalidArgument"},
	"401": {Kind: fakegoogle.StatusBefore, Status: 401, Reason: "authError"},
	"403": {Kind: fakegoogle.StatusBefore, Status: 403, Reason: "insufficientPermissions"},
	"404": {Kind: fakegoogle.StatusBefore, Status: 404, Reason: "notFound"},
	"409": {Kind: fakegoogle.StatusBefore, Status: 409, Reason: "duplicate"},
	"429": {Kind: fakegoogle.StatusBefore, Status: 429, Reason: "rateLimitExceeded"},
	"500": {Kind: fakegoogle.StatusBefore, Status: 500}, "503": {Kind: fakegoogle.StatusBefore},
	"500 after": {Kind: fakegoogle.StatusAfter, Status: 500}, "503 after": {Kind: fakegoogle.StatusAfter},
	"reset before": {Kind: fakegoogle.ResetBefore}, "reset after": {Kind: fakegoogle.ResetAfter},
	"hangs before": {Kind: fakegoogle.HangBefore}, "hangs after": {Kind: fakegoogle.HangAfter},
	"empty": {Kind: fakegoogle.EmptyAfter}, "odd": {Kind: fakegoogle.OddAfter}, "cut": {Kind: fakegoogle.CutAfter},
	"a number": {Kind: fakegoogle.NumberAfter}, "redirect": {Kind: fakegoogle.Redirect},
}

// settlesAll has each operation fail in each way, once and at each try, and each two operations of a call in each two
// ways; an operation that only settles fails after the answer about the effect was lost.
func (s Settling) settlesAll(t *testing.T) {
	realpart.Long(t, "it tries each fault at each request, and each two of them")
	if len(s.Acts) == 0 {
		return // the tool asks no one who could fail
	}
	effect := s.Acts[len(s.Acts)-1]
	lost := fakegoogle.Fault{Kind: fakegoogle.ResetAfter}
	every := maps.Clone(everyFault)
	if s.Absence {
		delete(every, "404")
	}
	for _, op := range slices.Concat(s.Acts, s.Looks) {
		for name, f := range every {
			for _, times := range []int{1, tries} {
				if times > 1 && strings.HasPrefix(name, "hangs") {
					continue // that takes long, and is as a reset is
				}
				t.Run(fmt.Sprintf("%s %s %d times", op, name, times), func(t *testing.T) {
					t.Parallel()
					faults := map[string][]fakegoogle.Fault{op: slices.Repeat([]fakegoogle.Fault{f}, times)}
					if slices.Contains(s.Looks, op) {
						faults[effect] = []fakegoogle.Fault{lost}
					}
					_, _ = s.settle(t, s.Open(t), faults)
				})
			}
		}
	}
	for _, op := range s.Acts[:len(s.Acts)-1] {
		for name, f := range every {
			if strings.HasPrefix(name, "hangs") || f.Status/100 == 4 {
				continue // that takes long, or ends the call
			}
			t.Run(fmt.Sprintf("%s %s and then", op, name), func(t *testing.T) {
				t.Parallel()
				for second, g := range every {
					if !strings.HasPrefix(second, "hangs") {
						p := s.Open(t)
						p.Break(op, f)
						p.Break(effect, g)
						end, result, err := p.CarryOut(t)
						s.holds(t, p, end, result, err)
					}
				}
			})
		}
	}
}

// survives has the process die at each point of a call. The next one knows what was recorded, and uses a recorded
// handle.
func (s Settling) survives(t *testing.T) {
	for _, point := range []string{"before anything", "before the handle is recorded", "before the call",
		"before the outcome is recorded"} {
		t.Run(point, func(t *testing.T) {
			p := s.Open(t)
			if p.Tool.Prepares() && point != "before anything" {
				handle, err := p.Tool.Prepare(t.Context(), p.Call)
				if err != nil || handle == "" {
					t.Fatalf("the handle is %q, %v", handle, err)
				}
				if point != "before the handle is recorded" {
					p.Call.Handle = handle
				}
			}
			recorded, prepared := p.Call.Handle, p.prepared(s)
			if point == "before the outcome is recorded" {
				if _, err := p.Tool.Execute(t.Context(), p.Call); err != nil {
					t.Fatal(err)
				}
			}
			end, result := p.Reconcile(t)
			var err error
			if end == "" {
				end, result, err = p.CarryOut(t)
			}
			if s.holds(t, p, end, result, nil); end == Failed {
				t.Errorf("it failed: %v", err)
			}
			if recorded != "" && (p.Call.Handle != recorded || p.prepared(s) != prepared && !s.Rereads) {
				t.Errorf("the handle %q is not used again: it is %q, and the operation that makes it was called %d "+
					"times", recorded, p.Call.Handle, p.prepared(s))
			}
		})
	}
}

// prepared returns how often the first operation was called, which makes the handle.
func (p *Provider) prepared(s Settling) int {
	if len(s.Acts) == 0 {
		return 0
	}
	return p.Calls(s.Acts[0])
}

// staysInPlace checks that the place is one for each user, that it is part of what is hashed, and that a call acts
// nowhere else.
func (s Settling) staysInPlace(t *testing.T) {
	p := s.Open(t)
	if !p.Tool.Placed() {
		return
	}
	in, err := p.Tool.Place(t.Context(), p.Call.Scope())
	again, err2 := p.Tool.Place(t.Context(), p.Call.Scope())
	other, err3 := p.Tool.Place(t.Context(), tool.Scope{UID: "another", Terminal: p.Call.Terminal})
	if err := errors.Join(err, err2, err3); err != nil || in != again || in == other || in.Label == "" ||
		in.Name == "" {
		t.Fatalf("the place is %+v, then %+v, and another user's %+v: %v", in, again, other, err)
	}
	hash := func(in tool.Place) string { return run.ArgsHash(p.Call.UID, p.Tool.Spec, in, p.Call.Args) }
	moved := in
	moved.ID += " of another"
	if hash(in) != hash(again) || hash(in) == hash(moved) || hash(in) == hash(tool.Place{}) {
		t.Error("the place is not part of the hash")
	}
	p.Call.Place = in
	if p.Tool.Prepares() {
		if p.Call.Handle, err = p.Tool.Prepare(t.Context(), p.Call); err != nil {
			t.Fatal(err)
		}
	}
	p.Call.Place = moved
	if _, err := p.Tool.Execute(t.Context(), p.Call); !fault.Is(err, fault.Policy, fault.CodeStaleView) ||
		tool.IsAmbiguous(err) || tool.IsTransient(err) {
		t.Errorf("Execute in another place = %v; want stale_view", err)
	}
	if out, err := p.Tool.Reconcile(t.Context(), p.Call); err == nil && out.Verdict != tool.Unknown {
		t.Errorf("Reconcile in another place = %+v; want unknown", out)
	}
	if p.Tool.Prepares() {
		if _, err := p.Tool.Prepare(t.Context(), p.Call); !fault.Is(err, fault.Policy, fault.CodeStaleView) {
			t.Errorf("Prepare in another place = %v; want stale_view", err)
		}
	}
	p.Call.Place = in
	if end, _, err := p.CarryOut(t); end != Completed || p.Effects() != 1 {
		t.Errorf("in its own place it is %s with %d effects: %v", end, p.Effects(), err)
	}
}

// recovers checks that a panic is one failed call, after which an effect may have taken place.
func (s Settling) recovers(t *testing.T) {
	p := s.Open(t)
	if p.Tool.Prepares() {
		var err error
		if p.Call.Handle, err = p.Tool.Prepare(t.Context(), p.Call); err != nil {
			t.Fatal(err)
		}
	}
	panicked := func(what string, err error, ambiguous bool) {
		t.Helper()
		if !tool.IsPanic(err) || tool.IsAmbiguous(err) != ambiguous || tool.IsTransient(err) ||
			strings.Contains(fault.As(err).Message, canary) {
			t.Errorf("%s = %v; want the error of a panic", what, err)
		}
	}
	_, err := s.Broken.Execute(t.Context(), p.Call)
	panicked("Execute", err, s.Broken.SideEffect)
	if s.Broken.Prepares() {
		_, err = s.Broken.Prepare(t.Context(), p.Call)
		panicked("Prepare", err, false)
	}
	if s.Broken.Placed() {
		_, err = s.Broken.Place(t.Context(), p.Call.Scope())
		panicked("Place", err, false)
	}
	if len(s.Looks) > 0 {
		_, err = s.Broken.Reconcile(t.Context(), p.Call)
		panicked("Reconcile", err, false)
	}
}
