package keyfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/base/keyfile"
)

func TestReadConcurrently(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	got := make([]string, 16)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			key, err := keyfile.Read(dir, "key", func(w io.Writer) error {
				_, err := w.Write([]byte{byte('a' + i)})
				return err
			})
			if err != nil {
				t.Error(err)
			}
			got[i] = string(key)
		})
	}
	wg.Wait()
	for _, k := range got {
		if k == "" || k != got[0] {
			t.Fatalf("%q", got)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v is left", err, entries)
	}
	info, err := entries[0].Info()
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, mode %v", err, info.Mode())
	}
}

func TestReadMakeFails(t *testing.T) {
	dir, broken := t.TempDir(), errors.New("broken")
	if _, err := keyfile.Read(dir, "key", func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v is left", err, entries)
	}
}
