package check_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) {
	var err error
	if programs, err = os.MkdirTemp("", "check"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	leaktest.Main(m, func() error { return os.RemoveAll(programs) })
}
