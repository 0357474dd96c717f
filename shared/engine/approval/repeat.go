package approval

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// repeated returns a sentence about an equal earlier call: one with the same tool, arguments and place, in this run or
// within the conversation's last hour. Arguments that read alike count as the same. It returns an empty repeat if there
// is none. Calls of a tool that rules on each call, such as a command, may repeat. So may calls with an effect only on
// the run's own container.
func repeated(tx *unit.Tx, u *run.User, t *tool.Tool, actionID string, at tool.Place, args json.RawMessage,
	ruling *tool.CallPolicy) repeat {
	if a := tx.State.Action(actionID); a != nil && a.Status == run.ActionExecuting {
		return repeat{} // the call was checked when it began
	}
	if actionID == "" || !t.SideEffect || t.Contained || ruling != nil {
		return repeat{}
	}
	e := run.Effect{UID: tx.Run.UID, Tool: t.Name, Place: at, Args: args,
		ArgsHash: run.ArgsHash(tx.Run.UID, t.Spec, at, args)}
	if twin := run.Twin(tx.State, actionID, e); twin != nil {
		return aboutTwin(tx, t, twin, apart(twin.ArgsHash == e.ArgsHash))
	}
	if old, equal := u.AllowedIn(tx.Run.ThreadID, e, tx.State, tx.Now); old != nil {
		return already(tx, t, args, old.At, apart(equal))
	}
	return repeat{}
}

// apart returns the sentence about a call that is not equal to an earlier one but reads alike.
func apart(equal bool) string {
	if equal {
		return ""
	}
	return " Only spaces, capitals, quotation marks, dashes, invisible characters, the encoding of letters or times, " +
		"the time zone, or the order of a list differ."
}

// A repeat is a sentence for the user about an equal earlier call. It is empty if there is none.
type repeat struct {
	words string
	at    []tool.Moment // times in the sentence
}

// said returns the sentence, with the time in place of %s.
func said(tx *unit.Tx, format string, at time.Time) repeat {
	m := clock(tx, at)
	m.Of = fmt.Sprintf(format, m.Text)
	return repeat{m.Of, []tool.Moment{m}}
}

// aboutTwin returns the sentence about an equal call of the same run, according to the outcome of that call.
func aboutTwin(tx *unit.Tx, t *tool.Tool, twin *run.Action, apart string) repeat {
	switch {
	case twin.Status == run.ActionCompleted:
		return already(tx, t, twin.Args, twin.UpdatedAt, apart)
	case twin.Execution == run.UnknownState:
		return said(tx, "Exactly this was started at %s, and its outcome is unknown."+apart, twin.UpdatedAt)
	case twin.Status == run.ActionExecuting:
		return said(tx, "Exactly this was started at %s."+apart, twin.UpdatedAt)
	case twin.Waiting() || twin.Unasked():
		return repeat{words: "Another card waits with exactly this." + apart}
	}
	return repeat{words: "Exactly this is allowed already and is about to be done." + apart}
}

// already returns the sentence about an equal call that was done at the given time.
func already(tx *unit.Tx, t *tool.Tool, args json.RawMessage, at time.Time, apart string) repeat {
	verb := "did"
	if targets, err := t.Targets(args); err == nil && len(targets) > 0 && targets[0].Kind == tool.TargetAddress {
		verb = "sent"
	}
	return said(tx, "You already "+verb+" exactly this at %s."+apart, at)
}

// clock returns the time of day in the user's zone. It names the zone if the user's own zone is not known.
func clock(tx *unit.Tx, at time.Time) tool.Moment {
	m := tool.Moment{Text: at.UTC().Format("15:04 MST"), At: at.UTC().Format(time.RFC3339)}
	if tx.Run.Locale.TimeZone != "" {
		m.Text = at.In(tx.Run.Locale.Zone()).Format("15:04")
	}
	return m
}

// noteYes records an effect that the user approved, so that an equal call within the conversation's next hour needs
// approval.
func noteYes(tx *unit.Tx, ap *run.Approval, d run.Decision) error {
	a := tx.State.Action(ap.ActionID)
	if d == run.Reject || d == run.Refine || !a.SideEffect || ap.Kind != run.KindApproval {
		return nil
	}
	allowed := run.Effect{UID: ap.UID, Tool: ap.Tool, Place: ap.Place, Args: ap.Args, ArgsHash: ap.ArgsHash}
	return tx.UpdateUser(func(u *run.User) { u.NoteAllowed(tx.AllowedNow(a.ID, allowed)) })
}
