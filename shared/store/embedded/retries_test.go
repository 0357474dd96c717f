package embedded

import (
	"database/sql"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// TestRetriesWhileBusy keeps a file locked. A commit gives up after 5 s, and Open after 25 s, because another process
// may rewrite the file at that time.
func TestRetriesWhileBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	begin := func() error {
		db, err := sql.Open("sqlite", path)
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = db.Close() })
		_, err = db.Exec("BEGIN IMMEDIATE")
		return err
	}
	if err := begin(); err != nil {
		t.Fatal(err)
	}
	busy := begin()
	if code(busy) != sqlite3.SQLITE_BUSY {
		t.Fatalf("the second transaction gets %v, want SQLITE_BUSY", busy)
	}
	for _, most := range []time.Duration{busyTimeout, openBusy} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			err := withRetries(t.Context(), most, func() error { return busy })
			if took := time.Since(began); code(err) != sqlite3.SQLITE_BUSY || took < most || took > most+busySlice {
				t.Errorf("after %v: %v, want SQLITE_BUSY after %v", took, err, most)
			}
			err = withRetries(t.Context(), most, func() error {
				if time.Since(began) < most+most*9/10 {
					return busy
				}
				return nil
			})
			if err != nil {
				t.Errorf("a lock that ends in time: %v, want no error", err)
			}
		})
	}
}
