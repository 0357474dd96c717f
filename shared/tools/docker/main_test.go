package docker_test

import (
	"os"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) {
	if os.Getenv(dies) != "" {
		runAndDie()
		return
	}
	leaktest.Main(m)
}
