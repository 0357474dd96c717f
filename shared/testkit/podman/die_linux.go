package podman

import (
	"os/exec"
	"syscall"
)

// dieWithParent: the kernel ends the service with this process, however it ends.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
