package gcsserver

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel end the server when this process ends, for whatever reason.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
