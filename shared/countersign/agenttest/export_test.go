package agenttest

import (
	"testing"
	"time"
)

// Impatient has one test, which leaves goroutines on purpose, not wait for their end.
func Impatient(t *testing.T) {
	before := patience
	patience = 100 * time.Millisecond
	t.Cleanup(func() { patience = before })
}
