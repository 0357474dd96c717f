//go:build !unix

package mcpclient

import "os/exec"

func ownGroup(*exec.Cmd) {}

// killGroup kills the program; what it has started stays.
func killGroup(cmd *exec.Cmd, over bool) {
	if !over {
		_ = cmd.Process.Kill() // it may have ended
	}
}
