//go:build !linux

package child

import "os/exec"

// CanDieWithParent reports whether [DieWithParent] has an effect on this system.
const CanDieWithParent = false

// DieWithParent does nothing on this system. The owner of the program stops it.
func DieWithParent(*exec.Cmd) {}

// OwnGroup does nothing on this system.
func OwnGroup(*exec.Cmd) {}
