//go:build !unix

package subprocess

import (
	"os"
	"os/exec"
)

// Own does nothing: there are no groups here.
func Own(*exec.Cmd) {}

// Kill kills the program alone, if it has not ended: what it has started stays.
func Kill(p *os.Process) { _ = p.Kill() }
