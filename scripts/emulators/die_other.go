//go:build !linux

package emulators

import "os/exec"

// diesWithParent: nothing here ends the child with us, so tests stop it when the last of its users is done.
const diesWithParent = false

func dieWithParent(*exec.Cmd, bool) {}
