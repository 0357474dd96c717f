package loop_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// TestTurnWithTooManyCalls lets the model make twenty calls in one answer. The first sixteen run. The model learns that
// the others did not.
func TestTurnWithTooManyCalls(t *testing.T) {
	w := newEnv(t)
	var calls []script.Call
	for n := range model.MaxCalls + 4 {
		calls = append(calls, script.Call{Name: "lookup", Args: json.RawMessage(fmt.Sprintf(`{"word":"w%d"}`, n))})
	}
	w.model.Restart(script.Turn{Calls: calls}, script.Turn{Text: "Looked."})
	v, err := w.start()
	if err != nil || v.Status != run.Completed || len(v.Actions) != model.MaxCalls || v.ModelCalls != 2 {
		t.Fatalf("%v, %+v; want v.Status %v, len(v.Actions) %v, v.ModelCalls 2", err, v, run.Completed, model.MaxCalls)
	}
	told := w.model.Requests()[1].Contents
	rs, err := model.Responses(told[len(told)-1])
	if err != nil || len(rs) != len(calls) {
		t.Fatalf("%d responses, %v", len(rs), err)
	}
	for n, r := range rs {
		if ran := !strings.Contains(r.Error, "not run"); ran != (n < model.MaxCalls) || ran == (r.Result == nil) {
			t.Errorf("of call %d it is told %s %s", n, r.Error, r.Result)
		}
	}
}
