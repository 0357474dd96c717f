package watch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/watch"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A store that is not available is read again until it is, at most every five seconds, and until the context ends.
func TestUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, reads := time.Now(), 0
		get := func(context.Context, ...string) ([]store.Doc, error) {
			if reads++; time.Since(began) < time.Minute {
				return nil, fmt.Errorf("down: %w", store.ErrUnavailable)
			}
			return []store.Doc{{Path: "runs/a", Version: time.Unix(1, 0)}}, nil
		}
		var h watch.Hub
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		states := 0
		for d, err := range h.Watch(ctx, "runs/a", get) {
			if states++; err != nil || !d.Exists() || time.Since(began) > time.Minute+5*time.Second {
				t.Errorf("%+v, %v after %v", d, err, time.Since(began))
			}
		}
		if states != 1 || reads < 12 || reads > 25 || time.Since(began) != 2*time.Hour {
			t.Errorf("%d states by %d reads, until %v", states, reads, time.Since(began))
		}
		began = time.Now()
		ctx, cancel = context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		for d, err := range h.Watch(ctx, "runs/a", get) {
			t.Errorf("while it is down: %+v, %v", d, err)
		}
		if paths := h.Paths(); len(paths) != 0 || time.Since(began) != 30*time.Second {
			t.Errorf("after %v somebody watches %v", time.Since(began), paths)
		}
	})
}

// Another error ends the sequence.
func TestError(t *testing.T) {
	failed := errors.New("broken")
	get := func(context.Context, ...string) ([]store.Doc, error) { return nil, failed }
	var h watch.Hub
	n := 0
	for _, err := range h.Watch(t.Context(), "runs/a", get) {
		if n++; err != failed {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Errorf("%d states", n)
	}
}

// A signal without a newer state delivers nothing.
func TestSameVersion(t *testing.T) {
	var h watch.Hub
	reads := 0
	get := func(_ context.Context, paths ...string) ([]store.Doc, error) {
		reads++
		if reads < 4 { // a signal that is a change to nobody, from a commit that lost
			h.Committed([]store.Write{store.Create("runs/a", nil, nil)})
			return []store.Doc{{Path: "runs/a"}}, nil
		}
		return []store.Doc{{Path: "runs/a", Version: time.Unix(1, 0)}}, nil
	}
	states := 0
	for d := range h.Watch(t.Context(), "runs/a", get) {
		if states++; d.Exists() {
			break
		}
	}
	if states != 2 || reads != 4 {
		t.Errorf("%d states by %d reads", states, reads)
	}
}
