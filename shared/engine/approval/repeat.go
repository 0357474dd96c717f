package approval

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/journal"
)

// repeated returns the sentence about an equal call that came before this one: the same tool, arguments and place, in
// this run or within the conversation's last hour. It is empty where there is none. A tool that rules on each call, as
// commands are ruled on, may be called again; so may one whose effect stays in the run's own container.
func repeated(tx *journal.Tx, u *run.User, t *tool.Tool, actionID string, at tool.Place, args json.RawMessage,
	ruling *tool.Ruling) repeat {
	if a := tx.State.Action(actionID); a != nil && a.Status == run.ActionExecuting {
		return repeat{} // it was checked when it began
	}
	if actionID == "" || !t.SideEffect || t.Contained || ruling != nil {
		return repeat{}
	}
	hash := run.ArgsHash(tx.Run.UID, t.Spec, at, args)
	if twin := run.Twin(tx.State, actionID, hash); twin != nil {
		return aboutTwin(tx, t, twin)
	}
	if e, found := u.AllowedIn(tx.Run.ThreadID, hash, tx.State, tx.Now); found {
		return already(tx, t, args, e.At)
	}
	return repeat{}
}

// A repeat says which equal call came before, in a sentence for the user; empty: none did.
type repeat struct {
	words string
	at    []tool.Moment // in the words
}

// said returns the sentence, in which %s is the moment.
func said(tx *journal.Tx, format string, at time.Time) repeat {
	m := clock(tx, at)
	m.Of = fmt.Sprintf(format, m.Text)
	return repeat{m.Of, []tool.Moment{m}}
}

// aboutTwin returns the sentence about an equal call of the same run, by what became of that call.
func aboutTwin(tx *journal.Tx, t *tool.Tool, twin *run.Action) repeat {
	switch {
	case twin.Status == run.ActionCompleted:
		return already(tx, t, twin.Args, twin.UpdatedAt)
	case twin.Execution == run.UnknownState:
		return said(tx, "Exactly this was begun at %s, and its outcome is unknown.", twin.UpdatedAt)
	case twin.Status == run.ActionExecuting:
		return said(tx, "Exactly this was begun at %s.", twin.UpdatedAt)
	case twin.Waiting() || twin.Unasked():
		return repeat{words: "Another card waits with exactly this."}
	}
	return repeat{words: "Exactly this is allowed already and is about to be done."}
}

// already returns the sentence about an equal call that was done at the time.
func already(tx *journal.Tx, t *tool.Tool, args json.RawMessage, at time.Time) repeat {
	verb := "did"
	if targets, err := t.Targets(args); err == nil && len(targets) > 0 && targets[0].Kind == tool.TargetAddress {
		verb = "sent"
	}
	return said(tx, "You already "+verb+" exactly this at %s.", at)
}

// clock returns the time of day in the user's zone, which is named where it is not known to be theirs.
func clock(tx *journal.Tx, at time.Time) tool.Moment {
	m := tool.Moment{Text: at.UTC().Format("15:04 MST"), At: at.UTC().Format(time.RFC3339)}
	if tx.Run.Region.TimeZone != "" {
		m.Text = at.In(tx.Run.Region.Zone()).Format("15:04")
	}
	return m
}

// noteYes keeps an effect that its user has said yes to, so that an equal call in the conversation's next hour asks.
func noteYes(tx *journal.Tx, ap *run.Approval, d run.Decision) error {
	a := tx.State.Action(ap.ActionID)
	if d == run.Reject || d == run.Refine || !a.SideEffect || ap.Kind != run.KindApproval {
		return nil
	}
	return tx.UpdateUser(func(u *run.User) { u.NoteAllowed(tx.AllowedNow(a.ID, ap.ArgsHash)) })
}
