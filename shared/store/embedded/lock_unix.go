//go:build unix

package embedded

import (
	"os"
	"syscall"
)

// lockFile locks the file against other processes. The kernel releases the lock in every case when the process ends.
func lockFile(f *os.File) (unlock func(), err error) {
	fd := int(f.Fd())
	for {
		if err = syscall.Flock(fd, syscall.LOCK_EX); err != syscall.EINTR {
			break
		}
	}
	return func() { _ = syscall.Flock(fd, syscall.LOCK_UN) }, err
}

// syncFolder makes the names of the files in a folder durable.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return closing(d.Sync(), d)
}
