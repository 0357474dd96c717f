package child

import (
	"os/exec"
	"syscall"
)

// CanDieWithParent reports whether [DieWithParent] has an effect on this system.
const CanDieWithParent = true

// DieWithParent makes the kernel kill the program when this process ends, for whatever reason.
func DieWithParent(cmd *exec.Cmd) { attributes(cmd).Pdeathsig = syscall.SIGKILL }

// OwnGroup runs the program in a process group of its own, so that a Ctrl-C at the terminal does not reach it.
func OwnGroup(cmd *exec.Cmd) { attributes(cmd).Setpgid = true }

func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}
