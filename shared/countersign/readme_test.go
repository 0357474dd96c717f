package countersign_test

import (
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/readme"
)

// TestReadme holds the tests that README.md names to tests that are there.
func TestReadme(t *testing.T) { readme.Check(t) }
