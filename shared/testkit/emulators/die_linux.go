package emulators

import (
	"os/exec"
	"syscall"
)

// diesWithParent makes the kernel end the child when this process ends, for whatever reason. The child has its own
// process group, so that a Ctrl-C at the terminal does not end it before scripts/dev has drained.
const diesWithParent = true

func dieWithParent(cmd *exec.Cmd, outlives bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if !outlives {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
}
