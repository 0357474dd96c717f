package approval

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/tool"
)

// repeated returns the sentence about an equal call that came before this one: the same tool, arguments and place, in
// this run or within the conversation's last hour. It is empty where there is none. A tool that rules on each call, as
// commands are ruled on, may be called again; so may one whose effect stays in the run's own container.
func repeated(tx *journal.Tx, u *run.User, t *tool.Tool, actionID string, at tool.Place, args json.RawMessage,
	ruling *tool.Ruling) string {
	if a := tx.State.Action(actionID); a != nil && a.Status == run.ActionExecuting {
		return "" // it was checked when it began
	}
	if actionID == "" || !t.SideEffect || t.Contained || ruling != nil {
		return ""
	}
	hash := run.ArgsHash(tx.Run.UID, t.Spec, at, args)
	if twin := run.Twin(tx.State, actionID, hash); twin != nil {
		return aboutTwin(tx, t, twin)
	}
	if e, found := u.AllowedIn(tx.Run.ThreadID, hash, tx.State, tx.Now); found {
		return already(tx, t, args, e.At)
	}
	return ""
}

// aboutTwin returns the sentence about an equal call of the same run, by what became of that call.
func aboutTwin(tx *journal.Tx, t *tool.Tool, twin *run.Action) string {
	switch {
	case twin.Status == run.ActionCompleted:
		return already(tx, t, twin.Args, twin.UpdatedAt)
	case twin.Execution == run.UnknownState:
		return fmt.Sprintf("Exactly this was begun at %s, and its outcome is unknown.", clock(tx, twin.UpdatedAt))
	case twin.Status == run.ActionExecuting:
		return fmt.Sprintf("Exactly this was begun at %s.", clock(tx, twin.UpdatedAt))
	case twin.Waiting() || twin.Unasked():
		return "Another card waits with exactly this."
	}
	return "Exactly this is allowed already and is about to be done."
}

// already returns the sentence about an equal call that was done at the time.
func already(tx *journal.Tx, t *tool.Tool, args json.RawMessage, at time.Time) string {
	verb := "did"
	if targets, err := t.Targets(args); err == nil && len(targets) > 0 && targets[0].Kind == tool.TargetAddress {
		verb = "sent"
	}
	return fmt.Sprintf("You already %s exactly this at %s.", verb, clock(tx, at))
}

// clock returns the time of day in the user's zone, which is named where it is not known to be theirs.
func clock(tx *journal.Tx, at time.Time) string {
	if tx.Run.Region.TimeZone == "" {
		return at.UTC().Format("15:04 MST")
	}
	return at.In(tx.Run.Region.Zone()).Format("15:04")
}

// noteYes keeps an effect that its user has said yes to, so that an equal call in the conversation's next hour asks.
func noteYes(tx *journal.Tx, ap *run.Approval, d run.Decision) error {
	a := tx.State.Action(ap.ActionID)
	if d == run.Reject || d == run.Refine || !a.SideEffect || ap.Kind != run.KindApproval {
		return nil
	}
	return tx.UpdateUser(func(u *run.User) { u.NoteAllowed(journal.AllowedNow(tx, a.ID, ap.ArgsHash)) })
}
