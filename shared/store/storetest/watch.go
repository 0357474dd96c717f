package storetest

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/countersign-run/countersign/shared/store"
)

// patience is how long a test waits for a state that must come.
const patience = 20 * time.Second

// watcher is a watch of one document.
type watcher struct {
	states chan store.Doc // closed when the sequence has ended
	stop   context.CancelFunc
	err    error // the error that ended it, once states is closed
}

// watch watches a document until stop is called or the test ends.
func watch(t testing.TB, st store.Store, path string) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{states: make(chan store.Doc, 1000), stop: cancel}
	go func() {
		defer close(w.states)
		for d, err := range st.Watch(ctx, path) {
			if w.err = err; err == nil {
				w.states <- d
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		for range w.states {
		}
	})
	return w
}

// next returns the next state.
func (w *watcher) next(t testing.TB) store.Doc {
	t.Helper()
	select {
	case d, ok := <-w.states:
		if !ok {
			t.Fatalf("the watch has ended: %v", w.err)
		}
		return d
	case <-time.After(patience):
		t.Fatalf("no state came in %v", patience)
	}
	return store.Doc{}
}

// until reads states up to the one with this version. Each state must be newer than the one before.
func (w *watcher) until(t testing.TB, version time.Time) {
	t.Helper()
	var last time.Time
	for {
		d := w.next(t)
		if d.Exists() && !d.Version.After(last) || d.Version.After(version) {
			t.Fatalf("version %v came after %v, and the last is %v", d.Version, last, version)
		}
		if last = d.Version; last.Equal(version) {
			return
		}
	}
}

// silent checks that no state has come.
func (w *watcher) silent(t testing.TB) {
	t.Helper()
	select {
	case d, ok := <-w.states:
		t.Fatalf("version %v came, or the end: %v, %v", d.Version, !ok, w.err)
	default:
	}
}

// testWatch watches a document before it exists, while it changes, and after its deletion.
func testWatch(t *testing.T, st store.Store) {
	w := watch(t, st, "runs/a")
	if d := w.next(t); d.Exists() || d.Path != "runs/a" || d.ReadTime.IsZero() {
		t.Fatalf("before the document exists: %+v", d)
	}
	var version time.Time
	for i, write := range []func() store.Write{
		func() store.Write { return store.Create("runs/a", fields{"due": epoch}, []byte("{ }")) },
		func() store.Write { return store.Update("runs/a", version, fields{"uid": "é"}, nil) },
		func() store.Write { return store.Delete("runs/a", version) },
		func() store.Write { return store.Create("runs/a", nil, []byte("2")) },
		func() store.Write { return store.Delete("runs/a", time.Time{}) },
	} {
		version = commit(t, st, write(), store.Create("queue/"+strconv.Itoa(i), nil, nil))[0]
		d, read := w.next(t), get(t, st, "runs/a")
		if !d.Version.Equal(version) || d.Path != "runs/a" || !bytes.Equal(d.Data, read.Data) ||
			!maps.Equal(d.Fields, read.Fields) || d.ReadTime.Before(version) || d.ReadTime.Location() != time.UTC {
			t.Fatalf("state %d: %+v, where a read has %+v", i, d, read)
		}
	}
	w.silent(t)
}

// testWatchSeveral checks that each watcher of a document gets each of its states, and no other document's.
func testWatchSeveral(t *testing.T, st store.Store) {
	version := commit(t, st, store.Create("runs/a", nil, nil), store.Create("runs/b", nil, nil))[0]
	var all []*watcher
	for range 5 {
		all = append(all, watch(t, st, "runs/a"))
	}
	other := watch(t, st, "runs/b")
	first, otherFirst := version, other.next(t)
	for round := range 3 {
		for i, w := range all {
			if d := w.next(t); !d.Version.Equal(version) {
				t.Fatalf("round %d: watcher %d has %v, want %v", round, i, d.Version, version)
			}
		}
		version = commit(t, st, store.Update("runs/a", version, nil, nil))[0]
	}
	all[0].stop()
	all[1].until(t, version)
	if last := commit(t, st, store.Update("runs/b", first, nil, nil))[0]; !otherFirst.Version.Equal(first) ||
		!other.next(t).Version.Equal(last) {
		t.Fatal("the watcher of another document received a state of this one")
	}
}

// testWatchRace checks that the last state comes, however the start of the watch falls between commits.
func testWatchRace(t *testing.T, st store.Store) {
	var version time.Time
	for i := range 8 {
		path := "runs/" + strconv.Itoa(i)
		watchers := make(chan *watcher, 4)
		each(2, func(who int) {
			if who == 1 {
				for range cap(watchers) {
					watchers <- watch(t, st, path)
				}
				return
			}
			v := commit(t, st, store.Create(path, nil, nil))
			for range 6 {
				v = commit(t, st, store.Update(path, v[0], nil, nil))
			}
			version = v[0]
		})
		for range cap(watchers) {
			(<-watchers).until(t, version)
		}
	}
}

// testWatchSlow checks that a slow reader delays no writer, and gets the newest state in the end.
func testWatchSlow(t *testing.T, st store.Store) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var versions []time.Time
	var taken []time.Time
	for d, err := range st.Watch(ctx, "runs/a") {
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, d.Version)
		if versions == nil {
			versions = commit(t, st, store.Create("runs/a", nil, nil))
			for range 40 {
				versions = commit(t, st, store.Update("runs/a", versions[0], nil, bytes.Repeat([]byte("x"), 10<<10)))
			}
		}
		if d.Version.Equal(versions[0]) {
			return
		}
	}
	t.Fatalf("the newest of 40 states, %v, did not come in %v: %v", versions, patience, taken)
}

// testWatchEnds checks that the sequence ends with its context and with its reader, and leaves no goroutine behind.
func testWatchEnds(t *testing.T, st store.Store) {
	commit(t, st, store.Create("runs/a", nil, nil))
	for range st.Watch(t.Context(), "runs/a") { // from here on the backend has a connection, if it needs one
		break
	}
	before := goleak.IgnoreCurrent()
	for range st.Watch(cancelled(t), "runs/a") {
		t.Error("a state came after the context's end")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, err := range st.Watch(ctx, "runs/a") {
		if err != nil {
			t.Fatal(err)
		}
		cancel()
	}
	for range 3 {
		w := watch(t, st, "runs/a")
		w.next(t)
		w.stop()
		for range w.states {
			t.Error("a state came after the context's end")
		}
		if w.err != nil {
			t.Errorf("the end of the context returned %v", w.err)
		}
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

func testWatchRefused(t *testing.T, st store.Store) {
	for d, err := range st.Watch(t.Context(), "runs/..") {
		if !errors.Is(err, store.ErrBadPath) {
			t.Fatalf("a bad path gave %+v, %v", d, err)
		}
	}
}

// RunLost tests that a watch survives a lost connection. lose ends the store's connections and refuses new ones until
// mend is called. elsewhere is the same store over another connection.
func RunLost(t *testing.T, st, elsewhere store.Store, lose, mend func()) {
	version := commit(t, st, store.Create("runs/a", nil, nil))[0]
	w := watch(t, st, "runs/a")
	w.until(t, version)
	for range 2 {
		lose()
		missed := change(t, elsewhere, store.Update("runs/a", version, nil, nil))
		version = change(t, elsewhere, store.Update("runs/a", missed, nil, nil))
		w.silent(t)
		mend()
		if d := w.next(t); !d.Version.Equal(version) {
			t.Fatalf("after the loss came version %v, want %v", d.Version, version)
		}
	}
	lose()
	change(t, elsewhere, store.Delete("runs/a", version))
	mend()
	if d := w.next(t); d.Exists() {
		t.Fatalf("after the loss came %+v; the document is deleted", d)
	}
	lose()
	w.stop()
	for range w.states {
	}
	if w.err != nil {
		t.Fatalf("the end of the context, without a connection, gave %v", w.err)
	}
	mend()
}

// change commits a write of one document and returns the document's version. Firestore's emulator has returned Canceled
// while another client's connection was lost; that says nothing about the commit.
func change(t *testing.T, st store.Store, w store.Write) time.Time {
	t.Helper()
	for {
		versions, err := st.Commit(t.Context(), w)
		switch {
		case err == nil:
			return versions[0]
		case !errors.Is(err, store.ErrUnavailable) || t.Context().Err() != nil:
			t.Fatalf("commit: %v", err)
		}
		if d := get(t, st, w.Doc.Path); !d.Version.Equal(w.Doc.Version) {
			return d.Version
		}
	}
}
