//go:build !unix

package embedded

import "os"

// lockFile locks nothing. Sharing one file among several processes is supported only on Unix.
func lockFile(*os.File) (unlock func(), err error) { return func() {}, nil }

// syncFolder does nothing, because systems other than Unix do not sync folders.
func syncFolder(string) error { return nil }
