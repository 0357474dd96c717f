// Package gorun ends a program when the `go run` that started it ends. A killed `go run` otherwise leaves its program
// running.
package gorun

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Follow kills this process, as a crash would, once the go command that started it has ended. It does nothing if a
// shell or a service manager started the program.
func Follow() {
	if pid := Parent(); pid != 0 {
		go With(pid)
	}
}

// Parent returns the process ID of the go command that started this process, or 0 if another program did.
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

// With kills this process once the process with this ID has ended.
func With(pid int) {
	for range time.Tick(200 * time.Millisecond) {
		if ended(pid) {
			kill()
		}
	}
}
