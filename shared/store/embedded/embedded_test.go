package embedded_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/store/storetest"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(t testing.TB) store.Store { return memory(t, time.Now) })
}

func TestFile(t *testing.T) {
	storetest.Run(t, func(t testing.TB) store.Store { return file(t, t.TempDir(), time.Now) })
}

// Versions increase even if the clock stands still.
func TestFrozenClock(t *testing.T) {
	storetest.Run(t, func(t testing.TB) store.Store {
		return memory(t, func() time.Time { return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC) })
	})
}

func memory(t testing.TB, now func() time.Time) *embedded.Store {
	t.Helper()
	st, err := embedded.OpenMemory(now)
	return cleanup.Close(t, st, err)
}

func file(t testing.TB, dir string, now func() time.Time) *embedded.Store {
	t.Helper()
	st, err := embedded.Open(dir, now)
	return cleanup.Close(t, st, err)
}

func TestReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "with space", "100%?#é")
	clock := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	first, err := embedded.Open(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	v, err := first.Commit(t.Context(), store.Create("runs/a", map[string]any{"due": clock}, []byte(`{ }`)))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.Close(), first.Close()); err != nil {
		t.Fatal(err)
	}
	clock = clock.Add(-24 * time.Hour) // the machine's clock was set back
	second := file(t, dir, now)
	docs, err := second.Get(t.Context(), "runs/a")
	if err != nil || string(docs[0].Data) != `{ }` || !docs[0].Version.Equal(v[0]) || docs[0].ReadTime.Before(v[0]) {
		t.Fatalf("after a restart: %+v, %v", docs, err)
	}
	w, err := second.Commit(t.Context(), store.Update("runs/a", v[0], nil, nil))
	if err != nil || !w[0].After(v[0]) {
		t.Fatalf("version %v after %v: %v", w, v, err)
	}
	if _, err := first.Get(t.Context(), "runs/a"); err == nil {
		t.Fatal("a closed store answers")
	}
}

// Only the file's owner may read it.
func TestFileMode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	st := file(t, dir, time.Now)
	if _, err := st.Commit(t.Context(), store.Create("runs/a", nil, nil)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
}

func TestOpenRefused(t *testing.T) {
	later := t.TempDir()
	file(t, later, time.Now)
	otherProgram(t, later, "PRAGMA user_version = 99")
	garbage := t.TempDir()
	if err := os.WriteFile(filepath.Join(garbage, "countersign.db"),
		[]byte("This is no database at all, and long enough to be seen as none."), 0o600); err != nil {
		t.Fatal(err)
	}
	occupied := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(occupied, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"file of a later release": later, "not a database": garbage,
		"a file in the directory's place": occupied} {
		t.Run(name, func(t *testing.T) {
			if st, err := embedded.Open(dir, time.Now); err == nil {
				t.Fatal(errors.Join(errors.New("opened"), st.Close()))
			}
		})
	}
}

// A commit that waits for another process's lock ends with its context, and reads continue meanwhile.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	st := file(t, dir, time.Now)
	unlock := otherProgram(t, dir, "BEGIN IMMEDIATE")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := st.Commit(ctx, store.Create("runs/a", nil, nil)); !errors.Is(err, store.ErrUnavailable) ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a commit on a locked file gave %v", err)
	}
	docs, err := st.Get(t.Context(), "runs/a")
	if err != nil || docs[0].Exists() {
		t.Fatalf("a read on a locked file gave %+v, %v", docs, err)
	}
	unlock()
	if _, err := st.Commit(t.Context(), store.Create("runs/a", nil, nil)); err != nil {
		t.Fatal(err)
	}
}

// While a commit waits for another process's lock, further commits wait as long as their own contexts allow. Then they
// are written, without the commits whose callers have gone.
func TestLockedQueue(t *testing.T) {
	dir := t.TempDir()
	st := file(t, dir, time.Now)
	unlock := otherProgram(t, dir, "BEGIN IMMEDIATE")
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	patient, impatient := make(chan error), make(chan error)
	for i := range 8 {
		ctx, outcome := t.Context(), patient
		if i%2 == 0 {
			ctx, outcome = soon, impatient
		}
		go func() {
			_, err := st.Commit(ctx, store.Create(fmt.Sprintf("runs/%d", i), nil, nil))
			outcome <- err
		}()
	}
	for range 4 {
		if err := <-impatient; !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a commit whose time was over gave %v", err)
		}
	}
	unlock()
	for range 4 {
		if err := <-patient; err != nil {
			t.Error(err)
		}
	}
	for i := range 8 {
		docs, err := st.Get(t.Context(), fmt.Sprintf("runs/%d", i))
		if err != nil || docs[0].Exists() != (i%2 == 1) {
			t.Errorf("commit %d: %+v, %v", i, docs, err)
		}
	}
}

// otherProgram runs a statement as another program would, on a connection that stays open until done is called.
func otherProgram(t *testing.T, dir, statement string) (done func()) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "countersign.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
	done = sync.OnceFunc(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(done)
	return done
}
