//go:build !unix

package embedded

import "os"

// lockFile locks nothing: several processes on one file are for Unix.
func lockFile(*os.File) (unlock func(), err error) { return func() {}, nil }

// syncFolder does nothing: other systems do not sync folders.
func syncFolder(string) error { return nil }
