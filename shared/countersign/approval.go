package countersign

import (
	"encoding/json"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// Approval is a stored question: whether a call may be carried out with exactly these arguments, or, of a Review, what
// became of one whose outcome is unknown.
type Approval struct {
	ID        string
	SessionID string
	RunID     string
	ActionID  string
	Tool      string
	Args      json.RawMessage // canonical
	Preview   Preview
	Reason    string // why it is asked
	Review    bool   // the call may have been carried out already: answer [WasDone] or [TryAgain]
	Requested time.Time
	Expires   time.Time // from then on the call is answered as not done; a review ends with its run

	hash string // of the preview
}

func approvalOf(v run.ApprovalView) Approval {
	return Approval{ID: v.ApprovalID, SessionID: v.ThreadID, RunID: v.RunID, ActionID: v.ActionID, Tool: v.Tool,
		Args: v.Args, Preview: previewOf(v.Preview), Reason: v.Reason, Review: v.Kind == run.KindReview,
		Requested: v.RequestedAt, Expires: v.ExpiresAt, hash: v.ArgsHash}
}

// Decision is the answer to an [Approval]: [Yes], [No], [Later], [Edited], and [WasDone] or [TryAgain] to a review. Its
// zero value is Later.
type Decision struct {
	decision run.Decision
	comment  string
	edited   any
}

// Yes has the call carried out, once, with exactly the arguments that were shown.
func Yes() Decision { return Decision{decision: run.ApproveOnce} }

// No has the call answered as not done. The model reads why, and goes on.
func No(why string) Decision { return Decision{decision: run.Reject, comment: why} }

// Later leaves the question as it is. [Agent.Approvals] lists it, for as long as Options.ApprovalTTL.
func Later() Decision { return Decision{} }

// Edited approves the call with other arguments: a value of the tool's In, or JSON. The model gets the new arguments.
func Edited(args any) Decision { return Decision{decision: run.ApproveEdited, edited: args} }

// WasDone answers a review: the call was executed.
func WasDone() Decision { return Decision{decision: run.ConfirmDone} }

// TryAgain answers a review: the call is to be asked about once more, to be carried out then.
func TryAgain() Decision { return Decision{decision: run.StartNew} }

// args returns the edited arguments as JSON, or nil.
func (d Decision) args() (json.RawMessage, error) {
	if d.edited == nil {
		return nil, nil
	}
	b, err := strictjson.Marshal(d.edited)
	if err != nil {
		return nil, fault.Invalid("editedArgs", "they have no form in JSON").Because(err)
	}
	return b, nil
}
