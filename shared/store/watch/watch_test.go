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
func TestWatchSameVersion(t *testing.T) {
	var h watch.Hub
	reads := 0
	get := func(_ context.Context, paths ...string) ([]store.Doc, error) {
		reads++
		if reads < 4 { // a signal from a failed commit, which changed nothing
			h.Committed([]store.Write{store.Create("runs/a", nil, nil)}, nil)
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

// TestChangesBrought passes changes to a watcher in several ways and orders. Commits of this process are delivered
// without a read. After any other possible change the document is read. Nothing is delivered after something newer.
func TestChangesBrought(t *testing.T) {
	at := func(n int64) time.Time { return time.Unix(n, 0) }
	update := []store.Write{store.Update("runs/a", at(1), map[string]any{"due": at(7)}, []byte("{}"))}
	committed := func(n int64) func(*watch.Hub) {
		return func(h *watch.Hub) { h.Committed(update, []time.Time{at(n)}) }
	}
	found := func(n int64) func(*watch.Hub) { return func(h *watch.Hub) { h.Found("runs/a", at(n)) } }
	lost := func(h *watch.Hub) { h.Committed(update, nil) }
	removed := func(h *watch.Hub) {
		h.Committed([]store.Write{store.Delete("runs/a", at(2))}, []time.Time{{}})
	}
	for name, c := range map[string]struct {
		begins int64 // the version that is there first, or 0
		then   int64 // the version that a read returns afterwards
		told   []func(*watch.Hub)
		got    int64
		reads  int
	}{
		"a commit":                              {1, 9, []func(*watch.Hub){committed(2)}, 2, 1},
		"two commits":                           {1, 9, []func(*watch.Hub){committed(2), committed(3)}, 3, 1},
		"two commits, told in the wrong order":  {1, 9, []func(*watch.Hub){committed(3), committed(2)}, 3, 1},
		"a commit whose outcome is not known":   {1, 9, []func(*watch.Hub){lost}, 9, 2},
		"another process's":                     {1, 9, []func(*watch.Hub){found(9)}, 9, 2},
		"another process's, then this one's":    {1, 9, []func(*watch.Hub){found(9), committed(3)}, 9, 2},
		"this process's, then another's":        {1, 9, []func(*watch.Hub){committed(3), found(9)}, 9, 2},
		"one that was removed":                  {1, 0, []func(*watch.Hub){removed}, 0, 2},
		"one that was removed, told of earlier": {1, 0, []func(*watch.Hub){removed, committed(2)}, 0, 2},
		"one that was not there":                {0, 9, []func(*watch.Hub){committed(2)}, 9, 2},
		"an older commit than what was read":    {5, 9, []func(*watch.Hub){committed(2), committed(6)}, 6, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var h watch.Hub
			reads, stored := 0, c.begins
			get := func(context.Context, ...string) ([]store.Doc, error) {
				reads++
				d := store.Doc{Path: "runs/a"}
				if stored > 0 {
					d.Version = at(stored)
				}
				return []store.Doc{d}, nil
			}
			states := 0
			for d, err := range h.Watch(t.Context(), "runs/a", get) {
				if err != nil {
					t.Fatal(err)
				}
				if states++; states == 1 {
					stored = c.then
					for _, tell := range c.told {
						tell(&h)
					}
					continue
				}
				if want := at(c.got); c.got > 0 && !d.Version.Equal(want) || d.Exists() != (c.got > 0) {
					t.Errorf("delivered %v, want %v", d.Version, want)
				}
				break
			}
			if reads != c.reads {
				t.Errorf("%d reads, want %d", reads, c.reads)
			}
		})
	}
}

// TestChangesBroughtLate passes an older state than the one that was read, which is not delivered, and one that the
// caller of the commit changes afterwards.
func TestChangesBroughtLate(t *testing.T) {
	var h watch.Hub
	at := func(n int64) time.Time { return time.Unix(n, 0).UTC() }
	get := func(context.Context, ...string) ([]store.Doc, error) {
		return []store.Doc{{Path: "runs/a", Version: at(5)}}, nil
	}
	tell := func(n int64, data []byte) {
		h.Committed([]store.Write{store.Update("runs/a", at(1), map[string]any{"due": at(7)}, data)},
			[]time.Time{at(n)})
	}
	var versions []int64
	for d := range h.Watch(t.Context(), "runs/a", get) {
		versions = append(versions, d.Version.Unix())
		if len(versions) == 1 {
			go func() {
				tell(4, nil)
				data := []byte("{}")
				tell(6, data)
				data[0] = '!'
			}()
			continue
		}
		if string(d.Data) != "{}" || d.Fields["due"] != at(7) || d.ReadTime.Before(d.Version) {
			t.Errorf("%+v", d)
		}
		break
	}
	if len(versions) != 2 || versions[1] != 6 {
		t.Errorf("the versions %v were delivered", versions)
	}
}
