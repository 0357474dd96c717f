package loop_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/engine/unit"
)

// TestKilledAfterAnUndo kills the process before and after each commit of an undo that reopens two earlier cards. The
// next sweeps finish it: the user sees each card once, and nothing was done.
func TestKilledAfterAnUndo(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		const commits = 4 // the undo, one run for each card, and the removal of the mark
		for _, after := range []bool{false, true} {
			for n := 1; n <= commits; n++ {
				t.Run(fmt.Sprintf("after=%v/%d", after, n), func(t *testing.T) {
					killedAfterUndo(t, newScenario(t, open(t)), n, after)
				})
			}
		}
	})
}

func killedAfterUndo(t *testing.T, s *scenario, n int, after bool) {
	correction := corrected(t, s)
	s.loop.Store = mortal(s.store, n, after)
	died, err := mortally(func() error { return undone(s, correction) })
	if err != nil || !died {
		t.Fatalf("died: %v, %v", died, err)
	}
	s.loop.Store = s.store
	if n == 1 && !after { // the client repeats an undo that was not recorded
		if err := undone(s, correction); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // other processes, later
		s.tick(3 * time.Minute)
		if _, err := s.loop.Sweep(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := s.deliver(context.Background()); err != nil && !unit.Held(err) {
			t.Fatal(err)
		}
	}
	if waiting := s.open("ana"); len(waiting) != 2 || len(s.effects) != 0 {
		t.Errorf("%d cards wait, %q were done: %+v", len(waiting), s.effects, waiting)
	}
	if found, err := s.loop.Sweep(context.Background()); err != nil || found.Due != 0 {
		t.Errorf("a later sweep finds %d due runs, %v", found.Due, err)
	}
}
