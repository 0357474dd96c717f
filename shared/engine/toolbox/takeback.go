package toolbox

import (
	"context"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// TakeBackTool is the name of the tool with which the model takes back waiting proposals of the conversation, because
// the user's new message says so.
const TakeBackTool = "take_back_proposals"

// TakeBackArgs are the arguments of [TakeBackTool].
type TakeBackArgs struct {
	Which []int `json:"which,omitempty" jsonschema:"the numbers of the proposals; needed if several wait"`
}

// TakenBack is the result of [TakeBackTool]: the proposals by their texts in the conversation.
type TakenBack struct {
	TakenBack []string `json:"takenBack"`
	Decided   []string `json:"alreadyDecided,omitempty"` // nothing has changed about these
}

// takeBackTool returns the tool, or nil if the user did not write the prompt or no proposal waited when the run began.
// Calls of the tool need no approval, because the tool can only withdraw proposals.
func (b *Toolbox) takeBackTool(in run.Input) *tool.Tool {
	if b.takeBack != nil {
		return b.takeBack
	}
	waits := in.Waits()
	if len(waits) == 0 || b.from.TakeBack == nil || in.DelegatedBy != nil || in.SingleCall || in.Session != nil ||
		in.OfPage(TakeBackTool) || b.Tools[TakeBackTool] != nil {
		return nil
	}
	numbered := "The waiting proposals are those that the record calls not known yet, numbered from 1, the oldest first"
	if len(in.Waiting) > 0 {
		numbered = "The note before that message numbers the waiting proposals"
	}
	b.takeBack = tool.Define(tool.Def[TakeBackArgs, TakenBack]{Name: TakeBackTool, Interruptible: true,
		Description: "Takes back proposals that you made earlier in this conversation and that still wait for the " +
			"user's decision. Call it only if the user's newest message says so, such as “no, cancel” or “forget " +
			"it”. " + numbered + "; if several wait and the message does not say which, ask the user.",
		Execute: func(ctx context.Context, c tool.Call, args TakeBackArgs) (TakenBack, error) {
			return b.withdraw(ctx, c.UID, waits, args.Which)
		}})
	return b.takeBack
}

// mayTakeBack reports whether a call of the tool in the run's newest turn follows from the user's message alone. After
// a turn with calls the model has read their results. Strangers may have written these, and a stranger's mail must not
// withdraw a proposal.
func mayTakeBack(s *run.State) bool {
	return !slices.ContainsFunc(s.Actions, func(a *run.Action) bool { return a.Turn < len(s.Turns) })
}

// withdraw takes back the waiting proposals with the numbers in which.
func (b *Toolbox) withdraw(ctx context.Context, uid string, waits []run.Message, which []int) (out TakenBack,
	err error) {
	if len(which) == 0 && len(waits) == 1 {
		which = []int{1}
	}
	if len(which) == 0 {
		return out, fault.Invalid("which", "%d proposals wait; ask the user which one they mean", len(waits))
	}
	for _, n := range which {
		if n < 1 || n > len(waits) {
			return out, fault.Invalid("which", "%d is not one of the %d proposals that wait", n, len(waits))
		}
	}
	out.TakenBack = []string{}
	for _, n := range slices.Compact(slices.Sorted(slices.Values(which))) {
		m := waits[n-1]
		err := b.from.TakeBack(ctx, uid, m.ApprovalID)
		switch f := fault.As(err); {
		case err == nil:
			out.TakenBack = append(out.TakenBack, m.Text)
		case f.Class == fault.Policy || f.Class == fault.Auth:
			out.Decided = append(out.Decided, m.Text)
		default:
			return out, err
		}
	}
	return out, nil
}
