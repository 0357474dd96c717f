package storetest_test

import (
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/store/storetest"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func memory(t testing.TB, now func() time.Time) store.Store {
	t.Helper()
	st, err := embedded.OpenMemory(now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

func frozen() time.Time { return noon }

// The decorators satisfy the contract themselves, before and after a shift.
func TestShiftAndCountConform(t *testing.T) {
	storetest.Run(t, func(t testing.TB) store.Store {
		st, forward := storetest.Shift(storetest.Count(memory(t, time.Now)))
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
			st, forward := storetest.Shift(memory(t, now))
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
	st := storetest.Count(memory(t, frozen))
	must(st.Commit(t.Context(), store.Create("runs/a", map[string]any{"due": noon}, []byte(`{}`)),
		store.Create("runs/b", nil, []byte(`[1]`))))
	_, conflict := st.Commit(t.Context(), store.Create("runs/a", nil, nil))
	must(st.Get(t.Context(), "runs/a", "runs/b", "runs/none"))
	must(st.Get(t.Context()))
	must(st.Query(t.Context(), store.Query{Collection: "runs", OrderBy: "due", Limit: 5}))
	want := storetest.Counts{Get: storetest.Calls{Trips: 1, Docs: 3, Bytes: 5},
		Query: storetest.Calls{Trips: 1, Docs: 1, Bytes: 2}, Commit: storetest.Calls{Trips: 2, Docs: 2, Bytes: 5}}
	if got := st.Take(); got != want || conflict == nil {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
	if got := st.Take(); got != (storetest.Counts{}) {
		t.Fatalf("after Take: %+v", got)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
