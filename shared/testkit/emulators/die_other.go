//go:build !linux

package emulators

import "os/exec"

// diesWithParent: this system does not end the child with this process, so tests stop it after its last user.
const diesWithParent = false

func dieWithParent(*exec.Cmd, bool) {}
