//go:build unix

package mcpclient

import (
	"os/exec"
	"syscall"
)

// ownGroup gives the program a process group, which what it starts is in as well.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills all processes of the program's group; over means that the program itself has ended.
func killGroup(cmd *exec.Cmd, _ bool) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // there may be none
}
