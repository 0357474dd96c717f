package loop_test

import (
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/engine/loop"
)

// TestStepTimeouts compares the steps' timeouts with the function's. Five seconds of the function's time are for
// the last commit.
func TestStepTimeouts(t *testing.T) {
	for d := loop.LeastCall; d <= time.Hour; d += time.Second {
		p := registry.Limits{}.Within(d)
		if longest := max(p.ModelTimeout, p.ToolTimeout, p.LongestTool) + 5*time.Second; longest > d ||
			p.LongestTool < p.ToolTimeout ||
			p.ToolTimeout < 10*time.Second || p.ModelTimeout < 20*time.Second {
			t.Fatalf("in a call of %s a model call takes %s and an effect %s", d, p.ModelTimeout, p.ToolTimeout)
		}
	}
}
