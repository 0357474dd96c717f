package toolstest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// A Settling is a tool with an effect, and its provider. For every fault of the provider, the effect must happen at
// most once, a completed call must have had it, and a failed call must not have had it.
type Settling struct {
	Open func(t *testing.T) *Provider // returns a new provider without faults
	// Broken is the same tool with a provider whose client panics with the value "CANARY".
	Broken *tool.Tool

	Acts  []string // the operations of a successful call, in order; the last one has the effect
	Looks []string // the operations that only settle
	// Rereads means that the first operation, which reads the data for the handle, is repeated before the effect.
	Rereads bool
	// Absence means that the effect is the absence of something, so a report of absence is proof.
	Absence bool
	// Found means that the tool finds a call that was done and is not recorded.
	Found bool
	Cases map[string]Settled // the expected ends of a call, by name
}

// Settled is the expected end of a call when operations fail.
type Settled struct {
	Faults  map[string][]fakegoogle.Fault
	Want    End
	Effects int
	Class   fault.Class // class of the error, with its code; empty: not checked
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

// End is the outcome of a call.
type End string

// The outcomes of a call.
const (
	Completed End = "completed"
	Failed    End = "failed"
	Review    End = "needs_review"
)

// tries is the number of times that the loop tries a call, and asks for its outcome.
const tries = 3

// Run runs the suite.
func (s Settling) Run(t *testing.T) {
	t.Run("cases", s.settlesCases)
	t.Run("every fault", s.settlesAll)
	t.Run("a crash", s.survives)
	t.Run("a lost record", s.looksUp)
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

// settle runs the call with faults, and checks the rules that hold for every fault.
func (s Settling) settle(t *testing.T, p *Provider, faults map[string][]fakegoogle.Fault) (End, error) {
	t.Helper()
	for op, list := range faults {
		p.fail(op, list...)
	}
	end, result, err := p.CarryOut(t)
	s.holds(t, p, end, result, err)
	for op := range faults {
		if p.Calls(op) == 0 {
			t.Errorf("%s was never called, so its fault proves nothing", op)
		}
	}
	return end, err
}

// holds checks that the end matches the effects, and that the error does not repeat the provider's text.
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
	if !errors.As(err, &e) && !tool.IsAmbiguous(err) { // its user learns that the outcome is unknown
		t.Errorf("the error has none of the five classes: %v", err)
	}
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		if strings.Contains(cause.Error(), secret) {
			t.Errorf("the provider's words are repeated: %v", cause)
		}
	}
}

// everyFault holds each way in which an operation can fail.
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

// settlesAll makes each operation fail in each way, once and at each try, and each pair of operations in each pair of
// ways. An operation that only reconciles fails after the answer about the effect was lost.
func (s Settling) settlesAll(t *testing.T) {
	realpart.Long(t, "it tries each fault at each request, and each two of them")
	if len(s.Acts) == 0 {
		return // no operation can fail
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
					continue // slow, and no different from a reset
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
				continue // slow, or ends the call
			}
			t.Run(fmt.Sprintf("%s %s and then", op, name), func(t *testing.T) {
				t.Parallel()
				for second, g := range every {
					if !strings.HasPrefix(second, "hangs") {
						p := s.Open(t)
						p.fail(op, f)
						p.fail(effect, g)
						end, result, err := p.CarryOut(t)
						s.holds(t, p, end, result, err)
					}
				}
			})
		}
	}
}
