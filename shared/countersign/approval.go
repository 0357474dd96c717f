package countersign

import (
	"encoding/json"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// Approval is a stored question to the user. It asks whether a call may run with exactly these arguments. A Review
// asks instead whether a call with an unknown outcome has run.
type Approval struct {
	ID        string
	SessionID string
	RunID     string
	ActionID  string
	Tool      string
	Args      json.RawMessage // canonical JSON
	Preview   Preview
	Reason    string // why the call needs approval
	Review    bool   // the call may have run already: answer with [WasDone] or [TryAgain]
	Requested time.Time
	Expires   time.Time // afterwards the call counts as not done; a review expires with its run

	hash string // of the preview
}

func approvalOf(v run.ApprovalView) Approval {
	return Approval{ID: v.ApprovalID, SessionID: v.ThreadID, RunID: v.RunID, ActionID: v.ActionID, Tool: v.Tool,
		Args: v.Args, Preview: previewOf(v.Preview), Reason: v.Reason, Review: v.Kind == run.KindReview,
		Requested: v.RequestedAt, Expires: v.ExpiresAt, hash: v.ArgsHash}
}

// Decision is the answer to an [Approval]: [Yes], [No], [Later], [Edited], and [WasDone] or [TryAgain] to a review.
// [Undo] revokes an answer that is still held. The zero value is Later.
type Decision struct {
	decision   run.Decision
	comment    string
	edited     any
	undoWindow time.Duration
}

// Yes approves the call. It runs once, with exactly the arguments that were shown.
func Yes() Decision { return Decision{decision: run.ApproveOnce} }

// No rejects the call. The model reads the reason and continues.
func No(why string) Decision { return Decision{decision: run.Reject, comment: why} }

// Later decides nothing. [Agent.Approvals] lists the approval for as long as Options.ApprovalTTL.
func Later() Decision { return Decision{} }

// Edited approves the call with other arguments: a value of the tool's In, or JSON. The model gets the new arguments.
func Edited(args any) Decision { return Decision{decision: run.ApproveEdited, edited: args} }

// Held delays the effect that the decision approves, by at most a minute. Until then, the user can revoke the decision:
// pass [Undo] to [Agent.Resolve]. A call that continues the run waits until the time is over.
func (d Decision) Held(wait time.Duration) Decision {
	d.undoWindow = wait
	return d
}

// Undo revokes a Yes or Edited that is still held ([Decision.Held]). The effect does not happen, and the model learns
// why. Afterwards it is too late: the error has the code already_resolved.
func Undo() Decision { return Decision{decision: run.Undo} }

// WasDone answers a review: the call has run.
func WasDone() Decision { return Decision{decision: run.ConfirmDone} }

// TryAgain answers a review: the call needs a new approval, and then runs.
func TryAgain() Decision { return Decision{decision: run.StartNew} }

// args returns the edited arguments as JSON, or nil if there are none.
func (d Decision) args() (json.RawMessage, error) {
	if d.edited == nil {
		return nil, nil
	}
	b, err := strictjson.Marshal(d.edited)
	if err != nil {
		return nil, fault.Invalid("editedArgs", "they cannot be encoded as JSON").Because(err)
	}
	return b, nil
}
