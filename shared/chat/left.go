package chat

import (
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/strictjson"
)

// carriedOver is a run that its user did not wait for: it waits in their inbox.
type carriedOver struct {
	RunID string `json:"runId"`
	Tool  string `json:"tool"`
}

// maxCarriedOver is how many of them a conversation follows. Above that the oldest are no longer followed, and stay in
// the inbox.
const maxCarriedOver = 16

func (h *history) carryOver(c *call) {
	h.Left = append(h.Left, carriedOver{c.RunID, c.model.Name})
	h.Left = h.Left[max(0, len(h.Left)-maxCarriedOver):]
}

// systemNote returns, in words for the model, what became of the runs that were carried over, or "". Those that have
// ended are no longer followed.
func (c *Chat) systemNote(ctx context.Context, uid string, h *history) (string, error) {
	var waiting []carriedOver
	var ended []outcome
	for _, l := range h.Left {
		called, err := c.Core.CallResult(ctx, uid, l.RunID)
		switch {
		case fault.Is(err, fault.Auth, fault.CodeNotFound):
			ended = append(ended, outcome{Tool: l.Tool,
				Error: "It was deleted before its user decided about it, or since."})
		case err != nil:
			return "", err
		case called.Terminal():
			ended = append(ended, outcomeOf(called))
			h.note(called)
		default:
			waiting = append(waiting, l)
		}
	}
	h.Left = waiting
	if len(ended) == 0 {
		return "", nil
	}
	raw, err := strictjson.Marshal(ended)
	return "For your information, from the record and not from the user: what waited for the user's decision " +
		"has ended. " + string(raw), err
}

// outcome is the recorded outcome of a run of one call, in the form of a tool's response.
type outcome struct {
	Tool   string          `json:"tool"`
	Args   json.RawMessage `json:"args,omitempty"`
	Output json.RawMessage `json:"output,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// The bounds of an outcome, in bytes: more is cut, since the run has it whole.
const (
	maxOutcomeArgs   = 2 << 10
	maxOutcomeOutput = 4 << 10
)

func outcomeOf(called *loop.CallResult) outcome {
	o := outcome{called.Tool, clip.JSON(called.Args, maxOutcomeArgs), nil,
		clip.Text(called.Response.Error, maxOutcomeOutput)}
	if called.Response.Result != nil {
		o.Output = clip.JSON(called.Response.Result, maxOutcomeOutput)
	}
	return o
}
