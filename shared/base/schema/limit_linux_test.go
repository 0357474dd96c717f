//go:build linux && !race

package schema_test

import (
	"runtime/debug"
	"syscall"
)

// limitMemory makes this process fail if its stacks and heap need more. Reserved memory does not count.
func limitMemory(bytes uint64) error {
	debug.SetMaxStack(64 << 20)
	debug.SetMemoryLimit(int64(bytes / 2)) // collect garbage long before
	const data = 2                         // RLIMIT_DATA
	return syscall.Setrlimit(data, &syscall.Rlimit{Cur: bytes, Max: bytes})
}
