package faulty_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/store/storetest"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func memory(t testing.TB, now func() time.Time) store.Store {
	t.Helper()
	st, err := embedded.OpenMemory(now)
	return cleanup.Close(t, st, err)
}

func frozen() time.Time { return noon }

// TestWrappers checks that the wrappers satisfy the store's contract themselves, before and after a shift.
func TestWrappers(t *testing.T) {
	storetest.Run(t, func(t testing.TB) store.Store {
		st, forward := faulty.Shift(faulty.Record(faulty.Count(memory(t, time.Now))))
		forward(time.Hour)
		if _, err := st.Commit(t.Context(), store.Create("shift/a", nil, nil)); err != nil {
			t.Fatal(err)
		}
		forward(time.Minute)
		return st
	})
}

func TestShift(t *testing.T) {
	for name, now := range map[string]func() time.Time{"frozen clock": frozen, "running clock": time.Now} {
		t.Run(name, func(t *testing.T) {
			st, forward := faulty.Shift(memory(t, now))
			before := must(st.Commit(t.Context(), store.Create("runs/a", nil, nil), store.Create("runs/b", nil, nil)))
			read := must(st.Get(t.Context(), "runs/a"))[0]
			forward(time.Hour)
			later := must(st.Get(t.Context(), "runs/a"))[0]
			if d := later.ReadTime.Sub(read.ReadTime); d < time.Hour || d > time.Hour+time.Minute {
				t.Fatalf("the clock went forward by %v", d)
			}
			if !later.Version.Equal(before[0]) {
				t.Fatalf("version %v became %v", before[0], later.Version)
			}
			after := must(st.Commit(t.Context(), store.Update("runs/a", before[0], nil, nil)))[0]
			if d := after.Sub(before[0]); d < time.Hour || d > time.Hour+time.Minute {
				t.Fatalf("a version after the shift is later by %v", d)
			}
			forward(24 * time.Hour)
			must(st.Commit(t.Context(), store.Update("runs/a", after, nil, nil), store.Delete("runs/b", before[1])))
			if last := must(st.Get(t.Context(), "runs/a"))[0]; last.ReadTime.Before(last.Version) {
				t.Fatalf("read at %v, version %v", last.ReadTime, last.Version)
			}
		})
	}
}

func TestCount(t *testing.T) {
	st := faulty.Count(memory(t, frozen))
	must(st.Commit(t.Context(), store.Create("queue/a", map[string]any{"due": noon}, []byte(`{}`)),
		store.Create("runs/b", nil, []byte(`[1]`))))
	_, conflict := st.Commit(t.Context(), store.Create("queue/a", nil, nil))
	must(st.Get(t.Context(), "queue/a", "runs/b", "runs/none"))
	must(st.Get(t.Context()))
	must(st.Query(t.Context(), store.Query{Collection: "queue", OrderBy: "due", Limit: 5}))
	want := faulty.Counts{Get: faulty.Calls{Trips: 1, Docs: 3, Bytes: 5},
		Query: faulty.Calls{Trips: 1, Docs: 1, Bytes: 2}, Commit: faulty.Calls{Trips: 2, Docs: 2, Bytes: 5}}
	if got := st.Take(); got != want || conflict == nil {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
	if got := st.Take(); got != (faulty.Counts{}) {
		t.Fatalf("after Take: %+v", got)
	}
}

// deaf is a caller that reads only the error.
func deaf(st store.Store, path string) error {
	_, err := st.Commit(context.Background(), store.Create(path, nil, nil))
	return err
}

// TestHooks applies each hook to one of three commits, and checks which commits are stored.
func TestHooks(t *testing.T) {
	own := errors.New("its own")
	for name, c := range map[string]struct {
		hook   faulty.Hook
		err    error
		dies   bool
		stored bool
	}{
		"down":        {faulty.Down, store.ErrUnavailable, false, false},
		"fails":       {faulty.Fail(own), own, false, false},
		"lost":        {faulty.Lost, store.ErrUnavailable, false, true},
		"kill before": {faulty.Kill(false), nil, true, false},
		"kill after":  {faulty.Kill(true), nil, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			st := faulty.Record(memory(t, frozen), faulty.Commits(faulty.Nth(2, c.hook)))
			var err error
			if deaf(st, "runs/a") != nil || len(must(st.Get(t.Context(), "runs/none"))) != 1 {
				t.Fatal("the first commit, or a read")
			}
			if died := faulty.Dies(func() { err = deaf(st, "runs/b") }); died != c.dies || !errors.Is(err, c.err) {
				t.Errorf("died: %t, %v", died, err)
			}
			if deaf(st, "runs/c") != nil {
				t.Fatal("the third commit")
			}
			want := 2
			if c.stored {
				want = 3
			}
			if left := must(st.Left(t.Context())); len(left) != want {
				t.Errorf("%d documents are stored", len(left))
			}
			st.Set()
			if err := deaf(st, "runs/b"); errors.Is(err, store.ErrConflict) != c.stored {
				t.Errorf("without hooks: %v", err)
			}
		})
	}
}

func TestDiesWithOtherPanics(t *testing.T) {
	defer func() {
		if recover() != "a mistake" {
			t.Error("the panic was taken for a death")
		}
	}()
	faulty.Dies(func() { panic("a mistake") })
}

// TestNestedHooks checks that the first hook is the outermost, and that it may repeat a call.
func TestNestedHooks(t *testing.T) {
	var seen []string
	note := func(word string) faulty.Hook {
		return faulty.Before(func(c *faulty.Call) { seen = append(seen, word+" "+string(c.Method)) })
	}
	twice := func(ctx context.Context, _ *faulty.Call,
		next faulty.Next) error {
		return errors.Join(next(ctx), next(ctx))
	}
	st := faulty.Wrap(memory(t, frozen), note("outer"), faulty.Gets(twice),
		faulty.Of(func(c *faulty.Call) bool { return c.Method != faulty.Commit }, note("inner")))
	must(st.Get(t.Context(), "runs/a"))
	must(st.Query(t.Context(), store.Query{Collection: "queue", OrderBy: "due", Limit: 5}))
	must(st.Commit(t.Context(), store.Create("runs/a", nil, nil)))
	want := []string{"outer get", "inner get", "inner get", "outer query", "inner query", "outer commit"}
	if !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestWatch checks that hooks wrap the delivery of each watched state, and that an error from a hook ends the sequence.
func TestWatch(t *testing.T) {
	st := faulty.Count(faulty.Wrap(memory(t, frozen), faulty.Of(func(c *faulty.Call) bool {
		return c.Method == faulty.Watch && slices.Equal(c.Paths, []string{"runs/a"})
	}, faulty.Nth(2, faulty.Down))))
	states := 0
	for d, err := range st.Watch(t.Context(), "runs/a") {
		if states++; states == 1 && (err != nil || d.Exists()) || states == 2 && !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("state %d: %+v, %v", states, d, err)
		}
		if states == 1 {
			must(st.Commit(t.Context(), store.Create("runs/a", nil, nil)))
		}
	}
	if got := st.Take(); states != 2 || got.Watch != (faulty.Calls{Trips: 2, Docs: 1}) || got.Get.Trips != 0 {
		t.Fatalf("%d states, counted %+v", states, got)
	}
}
