package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

const racers = 50

// race runs one commit per racer at once; all but one must return ErrConflict.
func race(t *testing.T, st store.Store, write func(i int) []store.Write) (winner int) {
	t.Helper()
	var won, lost atomic.Int32
	var who atomic.Int64
	each(racers, func(i int) {
		switch _, err := st.Commit(t.Context(), write(i)...); {
		case err == nil:
			won.Add(1)
			who.Store(int64(i))
		case errors.Is(err, store.ErrConflict):
			lost.Add(1)
		default:
			t.Errorf("racer %d: %v", i, err)
		}
	})
	if won.Load() != 1 || lost.Load() != racers-1 {
		t.Fatalf("%d won and %d lost of %d", won.Load(), lost.Load(), racers)
	}
	return int(who.Load())
}

func testRaceUpdate(t *testing.T, st store.Store) {
	version := commit(t, st, store.Create("runs/a", nil, nil))[0]
	for round := range 3 {
		mark := func(i int) string { return fmt.Sprintf("runs/a/events/%d-%d", round, i) }
		winner := race(t, st, func(i int) []store.Write {
			return []store.Write{store.Create(mark(i), nil, nil),
				store.Update("runs/a", version, nil, []byte(strconv.Itoa(i)))}
		})
		d := get(t, st, "runs/a")
		if string(d.Data) != strconv.Itoa(winner) {
			t.Fatalf("%d won and %s is written", winner, d.Data)
		}
		for i := range racers {
			if get(t, st, mark(i)).Exists() != (i == winner) {
				t.Fatalf("round %d: the event of racer %d, where %d won", round, i, winner)
			}
		}
		version = d.Version
	}
}

func testRaceCreate(t *testing.T, st store.Store) {
	winner := race(t, st, func(i int) []store.Write {
		return []store.Write{store.Create("runs/a", nil, []byte(strconv.Itoa(i)))}
	})
	if d := get(t, st, "runs/a"); string(d.Data) != strconv.Itoa(winner) {
		t.Fatalf("%d won and %s is written", winner, d.Data)
	}
}

// testCounter checks that concurrent increments with retries after conflicts lose no increment and count none twice.
func testCounter(t *testing.T, st store.Store) {
	commit(t, st, store.Create("runs/a", fields{"seq": int64(0)}, nil))
	each(10, func(i int) {
		for done := 0; done < 5; {
			docs, err := st.Get(t.Context(), "runs/a")
			if err != nil {
				t.Error(err)
				return
			}
			next := docs[0].Fields["seq"].(int64) + 1
			_, err = st.Commit(t.Context(), store.Update("runs/a", docs[0].Version, fields{"seq": next}, nil))
			if err != nil && !errors.Is(err, store.ErrConflict) {
				t.Error(err)
				return
			}
			if err == nil {
				done++
			}
		}
	})
	if n := get(t, st, "runs/a").Fields["seq"]; n != int64(50) {
		t.Fatalf("50 increments gave %v", n)
	}
}

func testCancelledBefore(t *testing.T, st store.Store) {
	ctx := cancelled(t)
	_, getErr := st.Get(ctx, "runs/a")
	_, queryErr := st.Query(ctx, store.Query{Collection: "queue", OrderBy: "due", Limit: 1})
	_, commitErr := st.Commit(ctx, store.Create("runs/a", nil, nil))
	for name, err := range map[string]error{"get": getErr, "query": queryErr, "commit": commitErr} {
		if !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrConflict) {
			t.Errorf("%s gave %v", name, err)
		}
	}
	if get(t, st, "runs/a").Exists() {
		t.Fatal("a cancelled commit is true")
	}
}

// testCancelledDuring checks that after a cancelled commit both of its documents exist or neither does. If Commit
// returned no error, both exist.
func testCancelledDuring(t *testing.T, st store.Store) {
	for i := range 40 {
		a, b := fmt.Sprintf("runs/%d", i), fmt.Sprintf("runs/%d/events/1", i)
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(time.Duration(i*i)*2*time.Microsecond, cancel)
		_, err := st.Commit(ctx, store.Create(a, nil, []byte(`1`)), store.Create(b, nil, []byte(`2`)))
		timer.Stop()
		cancel()
		if there := settled(t, st, a, b); err == nil && !there {
			t.Fatalf("commit %d was acknowledged and is not there", i)
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("commit %d gave %v", i, err)
		}
	}
}

// settled reads until both documents exist or neither does, and reports which. A server may still be working on a
// commit that its caller has abandoned. The Firestore emulator then shows one document a moment before the other.
func settled(t *testing.T, st store.Store, a, b string) (there bool) {
	t.Helper()
	for range 100 {
		docs, err := st.Get(t.Context(), a, b)
		if err != nil {
			t.Fatal(err)
		}
		if docs[0].Exists() == docs[1].Exists() {
			return docs[0].Exists()
		}
	}
	t.Fatalf("half of a commit is true: of %s and %s one is there", a, b)
	return false
}

func testOutOfTime(t *testing.T, st store.Store) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	_, err := st.Commit(ctx, store.Create("runs/a", nil, nil))
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("a commit without time gave %v", err)
	}
}
