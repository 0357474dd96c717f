//go:build unix

package gorun

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
)

func kill() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }

// ended reports whether there is no such process, or only its exit status is left: in a container nobody may ask for
// it.
func ended(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // on Linux
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	return bytes.HasPrefix(state, []byte("Z"))
}
