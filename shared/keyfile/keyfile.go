// Package keyfile keeps the keys of a server on one machine: each in a file that is made on first use and readable by its
// owner alone.
package keyfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Read gives the file of the name in the directory, and has it made where it is not there. Of several processes that do so
// at once one makes the file, and all get the same: it is written beside its place and then linked, so a half-written key is
// never seen and an existing one never replaced.
func Read(dir, name string, write func(io.Writer) error) ([]byte, error) {
	path := filepath.Join(dir, name)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := create(dir, name, write); err != nil {
			return nil, fmt.Errorf("make %s: %w", path, err)
		}
		content, err = os.ReadFile(path)
	}
	return content, err
}

func create(dir, name string, write func(io.Writer) error) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, name+".*") // CreateTemp makes it 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if err := errors.Join(write(tmp), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), filepath.Join(dir, name)); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
