//go:build !linux

package proof

import "os/exec"

func dieWithParent(*exec.Cmd) {}
