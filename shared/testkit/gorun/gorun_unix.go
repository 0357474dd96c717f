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

// ended reports whether the process is gone, or a zombie: in a container, its exit status may never be collected.
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
