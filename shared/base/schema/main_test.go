package schema_test

import (
	"fmt"
	"os"
	"testing"
)

// All imports run in a process of 512 MiB, also in the fuzzer's workers, as in a function.
func TestMain(m *testing.M) {
	if err := limitMemory(512 << 20); err != nil {
		fmt.Fprintln(os.Stderr, "the memory of this process cannot be limited:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
