package schema_test

import (
	"fmt"
	"os"
	"testing"
)

// Whatever is imported here is imported in a process of 512 MiB, the fuzzer's workers too, as in a function.
func TestMain(m *testing.M) {
	if err := limitMemory(512 << 20); err != nil {
		fmt.Fprintln(os.Stderr, "the memory of this process cannot be limited:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
