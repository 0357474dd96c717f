package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestSwapBeforeOpen covers a moment that TestSwappedLinks seldom hits: the opened file is not the resolved one.
func TestSwapBeforeOpen(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"plain", ".env", "good/config", ".git/config"} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f, err := root.Open(".env")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := check(root, "plain", f); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("another file than that of the name: %v", err)
	}
	git, err := root.OpenRoot(".git")
	if err != nil {
		t.Fatal(err)
	}
	defer git.Close()
	if err := stillThere(root, git, "good"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("another folder than that of the name: %v", err)
	}
	if err := stillThere(root, git, ".git"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a folder whose name has become another: %v", err)
	}
}
