package agenttest

import (
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/countersign/eval"
)

// Eval evaluates the agent with the cases in a folder, as package eval describes. It fails the test with the table of
// the results if a case does not pass or a file has a mistake. No tool is called, except those in options.Reads. With a
// [Script] or a [Replay], the conversations are held one after the other, in the order of the cases.
func Eval(t testing.TB, dir string, agent countersign.Options, run eval.Options) *eval.Report {
	t.Helper()
	look(t)
	set, err := eval.Load(dir)
	if err != nil {
		t.Fatalf("agenttest: %v", err)
	}
	a, err := eval.Of(agent)
	if err != nil {
		t.Fatalf("agenttest: %v", err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Errorf("agenttest: the agent does not close: %v", err)
		}
	})
	if _, scripted := agent.Provider.(*Model); scripted {
		run.Parallel = 1
	}
	report, err := eval.Run(t.Context(), a.Agent(), set, run)
	if err != nil {
		t.Fatalf("agenttest: %v", err)
	}
	if !report.Passed() {
		var table strings.Builder
		_ = report.Table(&table) // a strings.Builder does not fail
		t.Errorf("agenttest: %s:\n%s", dir, table.String())
	}
	return report
}
