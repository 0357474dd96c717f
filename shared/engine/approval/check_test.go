package approval

import (
	"reflect"
	"slices"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
)

func TestDecisionsOfEachKind(t *testing.T) {
	for kind, want := range map[run.Kind][]run.Decision{
		run.KindApproval: {run.Reject, run.TakeBack, run.ApproveOnce, run.ApproveAlways, run.ApproveAlwaysCommand,
			run.ApproveEdited, run.Undo},
		run.KindReview: append([]run.Decision{run.Undo}, reviewDecisions...),
		run.KindPlan:   append([]run.Decision{run.Undo}, planDecisions...),
	} {
		for _, d := range want {
			if checks[kind][d] == nil {
				t.Errorf("%s: %s has no row", kind, d)
			}
		}
		for d, row := range checks[kind] {
			if !slices.Contains(want, d) {
				t.Errorf("%s: %s has a row, and does not apply", kind, d)
			}
			if d != run.Undo && executes(d) != hasCheck(row, permitted) {
				t.Errorf("%s: %s executes: %t; the policy is asked: %t", kind, d, executes(d), hasCheck(row, permitted))
			}
			if d != run.Undo && executes(d) != hasCheck(row, current) {
				t.Errorf("%s: %s executes: %t; the card is compared: %t", kind, d, executes(d), hasCheck(row, current))
			}
		}
	}
}

// hasCheck reports whether the row makes the check.
func hasCheck(row []check, of check) bool {
	want := reflect.ValueOf(of).Pointer()
	return slices.ContainsFunc(row, func(c check) bool { return reflect.ValueOf(c).Pointer() == want })
}
