//go:build linux && !race

package schema_test

import (
	"runtime/debug"
	"syscall"
)

// limitMemory ends this process where it asks for more: the stacks and the heap are counted, and what is only reserved is not.
func limitMemory(bytes uint64) error {
	debug.SetMaxStack(64 << 20)
	debug.SetMemoryLimit(int64(bytes / 2)) // garbage is collected long before
	const data = 2                         // RLIMIT_DATA
	return syscall.Setrlimit(data, &syscall.Rlimit{Cur: bytes, Max: bytes})
}
