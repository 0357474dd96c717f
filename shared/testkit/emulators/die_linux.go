package emulators

import (
	"os/exec"
	"syscall"
)

// diesWithParent: the kernel ends the child with this process, however it ends. Its own process group keeps a Ctrl-C at
// the terminal from ending it before scripts/dev has drained.
const diesWithParent = true

func dieWithParent(cmd *exec.Cmd, outlives bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if !outlives {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
}
