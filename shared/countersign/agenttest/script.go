package agenttest

import (
	"testing"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/countersign/internal/bridge"
	"github.com/countersign-run/countersign/shared/countersign/offline"
)

// Turn is one answer of the model of a [Script]: [Say], [Call], a combination (Turn.And) or [Fail].
type Turn = offline.Turn

// Say is an answer with text.
func Say(text string) Turn { return offline.Say(text) }

// Call is an answer that calls a tool. The arguments are a value that encodes to a JSON object; nil sends none.
func Call(tool string, args any) Turn { return offline.Call(tool, args) }

// Fail is an answer with an HTTP status, such as 503 or 429, and no content. The agent's client retries some of them,
// as with the service. The retry gets the script's next turn, without a delay.
func Fail(status int) Turn { return offline.Fail(status) }

// Script returns a model with these answers, from package offline. A request that the service would refuse with 400
// fails the test, with the reason. So does a request after the last turn, and at the end of the test a turn that was
// not requested.
func Script(t testing.TB, turns ...Turn) *Model {
	t.Helper()
	script := offline.Script(turns...)
	if err := bridge.Of(script).Check(); err != nil {
		t.Fatalf("agenttest: %s", fault.As(err).Message)
	}
	return newModel(t, script, func() {
		if left := script.Left(); left > 0 {
			t.Errorf("agenttest: %d of the script's %d turns were not used", left, len(turns))
		}
	})
}
