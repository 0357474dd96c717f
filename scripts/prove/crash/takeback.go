package crash

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/testkit/invariants"
	"github.com/countersign-run/countersign/shared/tools/calendar"
)

// takeBack starts to undo the effect of the first run, in a second run. If the first run had no effect, the step does
// nothing.
var takeBack = step{"start to take it back", func(t *trial) bool { return t.over(0) }, func(t *trial, to *process) {
	path := fmt.Sprintf("/api/agent/runs/%s/compensate", t.runs[0])
	a, err := t.at(to)(t.ctx, http.MethodPost, path, map[string]string{"actionId": t.made()})
	want("taking it back", a, err, http.StatusOK, http.StatusConflict)
	if t.nothing = a.HTTP == http.StatusConflict; !t.nothing && a.RunID != t.takingBack() {
		proof.Must(fmt.Errorf("the undo is run %s", a.RunID))
	}
}}

// approveIt approves the undo.
var approveIt = step{"approve that", (*trial).askedBack, func(t *trial, to *process) {
	for _, ap := range t.view(1).Approvals {
		a, err := t.at(to).Decide(t.ctx, ap, "approve_once", nil)
		want("the other yes", a, err, http.StatusOK)
	}
}}

// askedBack reports whether the undo waits for approval, or has nothing to do.
func (t *trial) askedBack() bool { return t.nothing || len(t.view(1).Approvals) > 0 || t.over(1) }

// made returns the ID of the first run's action, and takingBack the ID of the undo's action.
func (t *trial) made() string       { return run.ActionID(t.runs[0], 1, 0, 0) }
func (t *trial) takingBack() string { return loop.CompensationRun(t.uid, t.made(), "") }

// takenBack returns the deletions of the user's objects, as effects of the run that undoes. A calendar does not report
// which action deleted an event. The deletion is therefore attributed to the action that succeeded, because a later one
// would not find the event.
func (t *trial) takenBack() (all []invariants.Effect) {
	done := run.ActionID(t.takingBack(), 1, 0, 0)
	for _, e := range t.env.cloud.Deleted(t.uid) {
		for _, a := range t.view(1).Actions {
			if a.Status == string(run.ActionCompleted) {
				done = a.ActionID
			}
		}
		all = append(all, invariants.Effect{UID: t.uid, ActionID: done,
			Agrees: func(args json.RawMessage) error {
				var d calendar.Deletion
				if err := json.Unmarshal(args, &d); err != nil {
					return err
				}
				if d.EventID != e["id"] || d.Event.Summary != e["summary"] || e["told"] != "all" {
					return fmt.Errorf("the event %s was deleted", e["id"])
				}
				return nil
			}})
	}
	return all
}
