//go:build unix

package subprocess

import (
	"os"
	"os/exec"
	"syscall"
)

// Own gives a program that is not started yet a process group, which what it starts is in as well.
func Own(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Kill kills what there is of a program's group, whose number is the program's own. The program may have ended.
func Kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
