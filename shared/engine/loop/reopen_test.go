package loop_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
)

// corrected asks for two cards, and corrects both. The run of the second card has read a page, from which the call
// copies. It returns the approval of the correction, which is held.
func corrected(t *testing.T, s *scenario) approval.Resolution {
	t.Helper()
	s.play(`$ model call send {"to":["bob@x.org"],"text":"ten"}
$ ask tell bob
$ model call page {"word":"safe"}
$ model call send {"to":["bob@x.org"],"text":"The safe stands behind the picture of the old harbour."}
$ ask read it and tell bob
$ model call send {"to":["bob@x.org"],"text":"eleven"}
$ ask at eleven`)
	cards := s.open("ana")
	i := slices.IndexFunc(cards, func(a run.ApprovalView) bool { return len(a.InsteadOf) == 2 })
	if i < 0 {
		t.Fatalf("no card corrects both others: %+v", cards)
	}
	r := approval.Resolution{UID: "ana", ApprovalID: cards[i].ApprovalID, Decision: run.ApproveOnce,
		UndoWindow: time.Minute}
	for _, e := range cards[i].InsteadOf {
		r.Rejects = append(r.Rejects, e.ApprovalID)
	}
	if _, err := s.loop.Resolve(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	return r
}

// undone undoes the approval.
func undone(s *scenario, r approval.Resolution) error {
	r.Decision, r.UndoWindow, r.Rejects = run.Undo, 0, nil
	_, err := s.loop.Resolve(context.Background(), r)
	return err
}

// TestReopenedCallApproval undoes a correction after the user has always allowed the recipient. Both earlier calls wait
// again, with what their cards said about strangers' text. Neither card allows anything in advance.
func TestReopenedCallApproval(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		s := newScenario(t, open(t))
		correction := corrected(t, s)
		thread := s.thread
		s.play(`$ anew
$ model call send {"to":["bob@x.org"],"text":"one"}
$ model text Sent.
$ ask one to bob
$ resolve 1 approve_and_always_allow_recipient`)
		if err := undone(s, correction); err != nil {
			t.Fatal(err)
		}
		got := s.play("$ deliver\n$ pending")
		ten, copied, _ := strings.Cut(got, "#2")
		if !strings.Contains(ten, `#1 approval: Send "ten"`) || strings.Contains(ten, "copied from") ||
			!strings.Contains(copied, `copied from "the page safe"`) || strings.Contains(copied, "#3") {
			t.Fatalf("waiting:\n%s", got)
		}
		for _, a := range s.open("ana") {
			if a.ThreadID != thread || slices.Contains(correction.Rejects, a.ApprovalID) ||
				!slices.Equal(a.Decisions, []run.Decision{run.ApproveOnce, run.ApproveEdited, run.Reject}) {
				t.Errorf("the reopened card: %+v", a)
			}
			r := approval.Resolution{UID: "ana", ApprovalID: a.ApprovalID, Decision: run.ApproveAlways}
			if _, err := s.loop.Resolve(t.Context(), r); !fault.Is(err, fault.Policy, fault.CodeNotApplicable) {
				t.Errorf("always: %v", err)
			}
			r.Decision = run.ApproveOnce
			if _, err := s.loop.Resolve(t.Context(), r); err != nil {
				t.Error(err)
			}
		}
		if s.play("$ deliver"); len(s.effects) != 3 {
			t.Errorf("%q were done", s.effects)
		}
	})
}

// TestReopenOverTheLimit undoes a correction when no other approval may be requested. The undo counts, the error says
// what stays rejected, and the same undo reopens the calls when that is possible again.
func TestReopenOverTheLimit(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		s := newScenario(t, open(t))
		correction := corrected(t, s)
		limits := &s.assistant().Limits
		day := limits.MaxPerDay
		limits.MaxPerDay = 3
		err := undone(s, correction)
		if !fault.Is(err, fault.Policy, fault.CodeTooMany) ||
			!strings.Contains(err.Error(), "Your approval was undone, and nothing was done. The earlier card “Send") {
			t.Errorf("%v", err)
		}
		limits.MaxPerDay = day
		for range 2 {
			if err := undone(s, correction); err != nil {
				t.Error(err)
			}
		}
		if s.play("$ deliver"); len(s.open("ana")) != 2 || len(s.effects) != 0 {
			t.Errorf("%d wait, %q were done", len(s.open("ana")), s.effects)
		}
	})
}
