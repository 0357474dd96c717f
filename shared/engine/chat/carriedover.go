package chat

import (
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/engine/loop"
)

// carriedOver is a run that the user did not wait for. It waits in the user's inbox.
type carriedOver struct {
	RunID string `json:"runId"`
	Tool  string `json:"tool"`

	called *loop.CallResult // the last known state of the run
}

// maxCarriedOver is the maximum number of carried-over runs that a conversation follows. Older runs stay in the inbox.
const maxCarriedOver = 16

func (h *history) carryOver(c *call) {
	h.Left = append(h.Left, carriedOver{c.RunID, c.model.Name, c.called})
	h.Left = h.Left[max(0, len(h.Left)-maxCarriedOver):]
}

// systemNote returns a note for the model with the outcomes of the carried-over runs that have ended, or "". The
// conversation no longer follows these runs.
func (c *Chat) systemNote(ctx context.Context, uid string, h *history) (string, error) {
	var waiting []carriedOver
	var ended []outcome
	for _, l := range h.Left {
		called, err := c.Core.CallResult(ctx, uid, l.RunID)
		switch {
		case fault.Is(err, fault.Auth, fault.CodeNotFound):
			ended = append(ended, outcome{Tool: l.Tool,
				Error: "It was deleted, before or after the user's decision about it."})
		case err != nil:
			return "", err
		case called.Terminal():
			ended = append(ended, outcomeOf(called))
			h.note(called)
		default:
			l.called = called
			waiting = append(waiting, l)
		}
	}
	h.Left = waiting
	if len(ended) == 0 {
		return "", nil
	}
	raw, err := strictjson.Marshal(ended)
	return noteIntro + "what waited for the user's decision has ended. " + string(raw), err
}

// noteIntro begins a server's note to the model, which comes before the user's message.
const noteIntro = "For your information, from the record and not from the user: "

// continued returns the input of a run that continues with the user's message. It abandons the calls that still wait.
func (c *Chat) continued(ctx context.Context, uid string, h *history, words string) (loop.Prompt, error) {
	note, err := c.systemNote(ctx, uid, h)
	if err != nil {
		return loop.Prompt{}, err
	}
	if err := c.abandon(ctx, uid, h); err != nil {
		return loop.Prompt{}, err
	}
	waits, numbered, err := h.waits()
	if note != "" && numbered != "" {
		note += "\n"
	}
	return loop.Prompt{Text: words, Client: &loop.ClientSide{SystemNote: note + numbered, Waiting: waits,
		History: conversation.ClientHistory{Contents: h.contents, Files: h.FilesBefore}}}, err
}

// waiting describes, for the model, a proposal that waits for the user.
type waiting struct {
	Number int    `json:"number"`
	Tool   string `json:"tool"`
	Title  string `json:"title"`
}

// waits returns the conversation's proposals that still wait for the user, and a note for the model that numbers them.
func (h *history) waits() (messages []run.Message, note string, err error) {
	var list []waiting
	for _, l := range h.Left {
		if l.called == nil || l.called.Approval == nil || l.called.Approval.Kind != run.KindApproval {
			continue
		}
		a := l.called.Approval
		title := clip.Text(a.Preview.Title, run.MaxOutcome)
		list = append(list, waiting{len(list) + 1, l.Tool, title})
		messages = append(messages, run.Message{RunID: l.RunID, ApprovalID: a.ApprovalID, Text: title})
	}
	if len(list) == 0 {
		return nil, "", nil
	}
	raw, err := strictjson.Marshal(list)
	return messages, noteIntro + "these proposals wait for the user's decision: " + string(raw), err
}

// outcome is the recorded outcome of a run of one call, in the form of a tool's response.
type outcome struct {
	Tool   string          `json:"tool"`
	Args   json.RawMessage `json:"args,omitempty"`
	Output json.RawMessage `json:"output,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// The limits of an outcome, in bytes. Longer values are cut; the run has the whole values.
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
