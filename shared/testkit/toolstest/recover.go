package toolstest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// survives kills the process at each point of a call. The next process has only the record, and must use the recorded
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

// looksUp loses the record of a call, as the restore of a backup does. The tool must not report a call that was done as
// not done, or the other way round.
func (s Settling) looksUp(t *testing.T) {
	p := s.Open(t)
	if p.Call.Since.IsZero() {
		p.Call.Since = time.Now().Add(-time.Hour)
	}
	if out, err := p.Tool.LookUp(t.Context(), p.Call); err != nil || out.Verdict == tool.Done && !s.Absence ||
		out.Verdict == tool.Unknown && out.Reason == "" || p.Effects() > 0 {
		t.Errorf("before the call: %+v, %v, %d effects", out, err, p.Effects())
	}
	if end, _, err := p.CarryOut(t); end != Completed {
		t.Fatalf("it is %s: %v", end, err)
	}
	p.Call.Handle = ""
	switch out, err := p.Tool.LookUp(t.Context(), p.Call); {
	case err != nil || out.Verdict == tool.NotDone || s.Found && out.Verdict != tool.Done || p.Effects() != 1:
		t.Errorf("after the call: %+v, %v, %d effects", out, err, p.Effects())
	case out.Verdict == tool.Done && p.Result != nil:
		p.Result(t, out.Result)
	}
}

// staysInPlace checks that each user has their own place, that the hash covers it, and that a call acts nowhere else.
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
	p.refusesPlace(t, moved)
	p.Call.Place = in
	if end, _, err := p.CarryOut(t); end != Completed || p.Effects() != 1 {
		t.Errorf("in its own place it is %s with %d effects: %v", end, p.Effects(), err)
	}
}

// refusesPlace checks that no step of a call acts in a place that is not its user's.
func (p *Provider) refusesPlace(t *testing.T, moved tool.Place) {
	t.Helper()
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
}

// recovers checks that a panic becomes one failed call whose effect may have happened.
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
