//go:build !unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// lock makes this process the only local server on the data directory. It relies on the rule that a file which another
// process has open cannot be removed.
func lock(dir string) (unlock func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	name := filepath.Join(dir, "lock")
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("another local server uses the data directory %s (set DATA_DIR to run a second one)",
			dir)
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return f.Close, nil
}
