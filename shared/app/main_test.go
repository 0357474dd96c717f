package app_test

import (
	"os"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
	"github.com/countersign-run/countersign/shared/testkit/mcpservers"
)

func TestMain(m *testing.M) {
	if os.Getenv(beCollector) != "" {
		serveCollector()
	}
	if os.Getenv(beRelease) != "" {
		serveRelease()
	}
	mcpservers.Main()
	leaktest.Main(m, emulators.End)
}
