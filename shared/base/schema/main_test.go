package schema_test

import (
	"fmt"
	"os"
	"testing"
)

// TestMain limits the process, and the fuzzer's workers, to 512 MiB, as in a function.
func TestMain(m *testing.M) {
	if err := limitMemory(512 << 20); err != nil {
		fmt.Fprintln(os.Stderr, "the memory of this process cannot be limited:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
