//go:build !linux

package emulators

import "os/exec"

// diesWithParent does nothing, because this system cannot end the child with this process. Tests stop it after its
// last user.
const diesWithParent = false

func dieWithParent(*exec.Cmd, bool) {}
