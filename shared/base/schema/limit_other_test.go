//go:build !linux || race

package schema_test

import "runtime/debug"

// limitMemory limits only the stack, not the heap: the race detector exceeds any heap limit, and other systems have
// other mechanisms.
func limitMemory(uint64) error {
	debug.SetMaxStack(64 << 20)
	return nil
}
