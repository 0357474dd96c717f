// Package gorun ends a program with the `go run` that has started it, which leaves its child running when it is killed
// itself.
package gorun

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Follow kills this process, as a crash would, once the go command that has started it has ended. It does nothing in a
// program that a shell or a service manager has started.
func Follow() {
	if pid := Parent(); pid != 0 {
		go With(pid)
	}
}

// Parent returns the process id of the go command that has started this process, or 0 if something else has.
func Parent() int {
	pid := os.Getppid()
	name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm") // on Linux
	if err != nil {
		if name, err = exec.Command("ps", "-o", "comm=", "-p", strconv.Itoa(pid)).Output(); err != nil {
			return 0
		}
	}
	if filepath.Base(strings.TrimSpace(string(name))) != "go" {
		return 0
	}
	return pid
}

// With kills this process once the process with the id has ended.
func With(pid int) {
	for range time.Tick(200 * time.Millisecond) {
		if ended(pid) {
			kill()
		}
	}
}
