package embedded_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
)

// reopened opens the store in the directory and reports whether it is an older copy of itself.
func reopened(t *testing.T, dir string) (st *embedded.Store, putBack bool) {
	t.Helper()
	st, err := embedded.Open(dir, time.Now)
	st = cleanup.Close(t, st, err)
	if _, putBack, err = st.PutBack(); err != nil {
		t.Fatal(err)
	}
	return st, putBack
}

func create(t *testing.T, st store.Store, path string) {
	t.Helper()
	if _, err := st.Commit(context.Background(), store.Create(path, nil, []byte("1"))); err != nil {
		t.Fatal(err)
	}
}

// TestPutBackUntilKept checks that every process and every start detects an older copy until Kept is called, whatever
// is committed in the meantime.
func TestPutBackUntilKept(t *testing.T) {
	dir, db := t.TempDir(), "countersign.db"
	st, _ := reopened(t, dir)
	create(t, st, "runs/a")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	older, err := os.ReadFile(filepath.Join(dir, db))
	if err != nil {
		t.Fatal(err)
	}
	st, putBack := reopened(t, dir)
	create(t, st, "runs/b")
	if err := st.Close(); err != nil || putBack {
		t.Fatalf("%v; a store that was only closed counts as an older copy: %v", err, putBack)
	}
	if err := os.WriteFile(filepath.Join(dir, db), older, 0o600); err != nil {
		t.Fatal(err)
	}
	st, first := reopened(t, dir)
	create(t, st, "runs/c")
	other, second := reopened(t, dir)
	if !first || !second {
		t.Errorf("the older copy is noticed: %v, and by a second process: %v", first, second)
	}
	if err := other.Kept(); err != nil {
		t.Fatal(err)
	}
	if err := st.Kept(); err != nil {
		t.Errorf("to say it twice: %v", err)
	}
	if _, again := reopened(t, dir); again {
		t.Error("the copy is noticed again after it was dealt with")
	}
}

// TestPin checks that Pin syncs the file next to the store only if something was committed since the last sync, however
// many callers there are.
func TestPin(t *testing.T) {
	syncs := embedded.CountSyncs(t.Cleanup)
	st, _ := reopened(t, t.TempDir())
	for i, want := range []int{1, 1, 2} {
		if i != 1 {
			create(t, st, fmt.Sprint("runs/", i))
			create(t, st, fmt.Sprint("threads/", i))
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := st.Pin(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if *syncs != want {
			t.Errorf("round %d: %d syncs, want %d", i, *syncs, want)
		}
	}
}

// TestPutBackAfterKill checks that after a process is killed during commits, of one caller or of many, the next process
// does not take the store for an older copy.
func TestPutBackAfterKill(t *testing.T) {
	for _, job := range []string{"append", "crowd"} {
		dir := t.TempDir()
		killed(t, job, dir, 60)
		if _, putBack := reopened(t, dir); putBack {
			t.Errorf("%s: a killed process's store counts as an older copy", job)
		}
	}
}
