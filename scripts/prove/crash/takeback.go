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

// takeBack begins to take back what the first run has done, which is the second run. Where that has done nothing, there
// is nothing to take back.
var takeBack = step{"start to take it back", func(t *trial) bool { return t.over(0) }, func(t *trial, to *process) {
	path := fmt.Sprintf("/api/agent/runs/%s/compensate", t.runs[0])
	a, err := t.at(to)(t.ctx, http.MethodPost, path, map[string]string{"actionId": t.made()})
	want("taking it back", a, err, http.StatusOK, http.StatusConflict)
	if t.nothing = a.HTTP == http.StatusConflict; !t.nothing && a.RunID != t.takingBack() {
		proof.Must(fmt.Errorf("it is taken back by run %s", a.RunID))
	}
}}

// approveIt says yes to that.
var approveIt = step{"approve that", (*trial).askedBack, func(t *trial, to *process) {
	for _, ap := range t.look(1).Approvals {
		a, err := t.at(to).Decide(t.ctx, ap, "approve_once", nil)
		want("the other yes", a, err, http.StatusOK)
	}
}}

// askedBack reports whether the user is asked about what takes back, if there is something.
func (t *trial) askedBack() bool { return t.nothing || len(t.look(1).Approvals) > 0 || t.over(1) }

// made returns the id of the first run's action, and takingBack that of the run which takes it back.
func (t *trial) made() string       { return run.ActionID(t.runs[0], 1, 0, 0) }
func (t *trial) takingBack() string { return loop.CompensationRun(t.uid, t.made(), "") }

// takenBack returns the deletions of the user's events, as effects of the compensating run. A calendar does not name
// the action that deleted an event: it is the completed one, because a later one finds the event gone.
func (t *trial) takenBack() (all []invariants.Effect) {
	done := run.ActionID(t.takingBack(), 1, 0, 0)
	for _, e := range t.env.cloud.Deleted(t.uid) {
		for _, a := range t.look(1).Actions {
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
