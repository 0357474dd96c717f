//go:build !unix

package subprocess

import (
	"os"
	"os/exec"
)

// Own does nothing: this system has no process groups.
func Own(*exec.Cmd) {}

// Kill kills only the program itself, if it is still running. Its child processes continue.
func Kill(p *os.Process) { _ = p.Kill() }
