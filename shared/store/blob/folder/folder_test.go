package folder_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/countersign-run/countersign/shared/store/blob"
	"github.com/countersign-run/countersign/shared/store/blob/blobtest"
	"github.com/countersign-run/countersign/shared/store/blob/folder"
)

func TestFolder(t *testing.T) {
	blobtest.Run(t, func(t testing.TB) blob.Store { return folder.New(filepath.Join(t.TempDir(), "files")) })
}

// TestFilePermissions checks the rights of the folder and its files, and that nothing else is left in it.
func TestFilePermissions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "files")
	f, name := folder.New(dir), blobtest.Object("ada", []byte("x"), 1)
	for range 2 {
		if err := f.Create(t.Context(), name, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d entries, %v; want one file", len(entries), err)
	}
	at, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := entries[0].Info()
	if err != nil || info.Mode().Perm() != 0o600 || at.Mode().Perm() != 0o700 {
		t.Errorf("modes %v and %v, %v; want 0600 in 0700", info.Mode(), at.Mode(), err)
	}
}
