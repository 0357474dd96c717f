package embedded

import "os"

// CountSyncs counts how often the file beside a store is synced, until the test ends.
func CountSyncs(cleanup func(func())) *int {
	n, real := 0, syncFile
	syncFile = func(f *os.File) error {
		n++
		return real(f)
	}
	cleanup(func() { syncFile = real })
	return &n
}
