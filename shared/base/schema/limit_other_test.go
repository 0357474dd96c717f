//go:build !linux || race

package schema_test

import "runtime/debug"

// limitMemory limits the stack alone and not the heap: the race detector exceeds any such limit, and other systems have
// other mechanisms.
func limitMemory(uint64) error {
	debug.SetMaxStack(64 << 20)
	return nil
}
