//go:build unix

package subprocess

import (
	"os"
	"os/exec"
	"syscall"
)

// Own puts a program that has not started yet into a process group of its own, which its child processes inherit.
func Own(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Kill kills the remaining processes of a program's group. The group has the program's process ID. The program itself
// may have ended.
func Kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
