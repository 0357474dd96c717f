package app_test

import (
	"testing"

	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/engine/loop"
)

// TestTimeoutForSeveralSteps checks that a function with the platform's default timeout executes an approved e-mail
// and calls the model again in one delivery of the resume.
func TestTimeoutForSeveralSteps(t *testing.T) {
	w := deploy(t, "FUNCTION_TIMEOUT=60s")
	w.mail()
	if got := w.approve(w.ask()); got.Status != "completed" || len(w.Google.Messages()) != 1 {
		t.Errorf("after one delivery the run is %s, and %d e-mails went out", got.Status, len(w.Google.Messages()))
	}
}

// TestTimeoutMinimum compares the minimum timeout in the configuration with what the loop needs.
func TestTimeoutMinimum(t *testing.T) {
	if config.LeastTimeout != loop.LeastCall {
		t.Errorf("FUNCTION_TIMEOUT is taken from %s, and a step needs %s", config.LeastTimeout, loop.LeastCall)
	}
}
