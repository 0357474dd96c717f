//go:build unix

package process

import (
	"errors"
	"os"
	"syscall"
)

func exitCode(s *os.ProcessState) int {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return s.ExitCode()
}

// outOfResources reports whether the system could not start another program for lack of resources.
func outOfResources(err error) bool {
	for _, e := range []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// readNow reads from a pipe without waiting. It returns 0 if there is nothing to read.
func readNow(r *os.File, buf []byte) (n int) {
	raw, err := r.SyscallConn()
	if err != nil {
		return 0
	}
	if err := raw.Read(func(fd uintptr) bool {
		n, err = syscall.Read(int(fd), buf)
		return true
	}); err != nil {
		return 0
	}
	return n
}
