package embedded

import "os"

// CountSyncs counts the syncs of the file next to a store until the test ends.
func CountSyncs(cleanup func(func())) *int {
	n, real := 0, syncFile
	syncFile = func(f *os.File) error {
		n++
		return real(f)
	}
	cleanup(func() { syncFile = real })
	return &n
}
