package conversation

import (
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// ClientHistory is a conversation that the client stores. A run on an empty store starts from it and continues without
// a difference. The caller must pass the data that [Loop.Conversation] returned.
type ClientHistory struct {
	Contents []json.RawMessage // up to the user's last message; everything if loop.Prompt has a new one
	Turns    []ClientTurn      // the model's answers after Contents
	Files    bool              // an earlier message had a file, even if Contents has lost it
}

// ClientTurn is one answer of the model and the known responses to its calls.
type ClientTurn struct {
	Content   json.RawMessage
	Responses []*model.Response // one for each call, in order; nil for a call that waits
}

// Conversation is a run in the form from which a [ClientHistory] is made.
type Conversation struct {
	Contents *model.Contents // verbatim; if calls wait, the last content contains them
	Calls    []TurnCall      // all calls of the last content; nil if none waits
	End      *run.End        // nil while a call waits
}

// TurnCall is one call of a turn in which at least one call waits.
type TurnCall struct {
	Action   *run.Action
	Response *model.Response // nil while it waits
	Model    string          // the name of the model that made the call
}

// Restore adds a client's conversation to the run as the run's own events.
func Restore(tx *unit.Tx, k *ClientHistory) error {
	if len(k.Turns) == 0 {
		return nil
	}
	if err := tx.SetStatus(run.Planning); err != nil {
		return err
	}
	for _, t := range k.Turns {
		if err := restoreTurn(tx, t); err != nil {
			return err
		}
	}
	return nil
}

func restoreTurn(tx *unit.Tx, t ClientTurn) error {
	said, err := model.Parse(t.Content)
	if err != nil {
		return err
	}
	turn := &run.Turn{Model: tx.Ex.Model.Name(), Content: t.Content, Text: said.Text, Calls: len(said.Calls)}
	if err := tx.AddEvent(run.Event{Type: run.ModelAnswered, Turn: turn}); err != nil {
		return err
	}
	for i, c := range said.Calls {
		id := run.ActionID(tx.Run.ID, len(tx.State.Turns), i, 0)
		call := &run.ProposedCall{Turn: len(tx.State.Turns), Index: i, CallID: c.ID, Tool: approval.DisplayName(c.Name),
			Args: c.Args}
		if known := tx.Ex.Toolbox.Tools[c.Name]; known != nil {
			call.SideEffect, call.Untrusted = known.SideEffect, known.Untrusted
		}
		if call.SideEffect {
			call.Args = executedArgs(c.Args, t.Responses[i])
		}
		if err := tx.AddEvent(run.Event{Type: run.ActionProposed, ActionID: id, Proposed: call}); err != nil {
			return err
		}
		if err := restoreAnswer(tx, id, tx.Ex.Toolbox.Tools[c.Name], t.Responses[i]); err != nil {
			return err
		}
	}
	return nil
}

// restoreAnswer adds the response to a call. A call that does not run in this process has waited for the response. Such
// a call is one of the page's tools, even if the page no longer has the tool, or an effect that another run executed.
func restoreAnswer(tx *unit.Tx, id string, t *tool.Tool, r *model.Response) error {
	if r == nil {
		return approval.WaitForAnswer(tx, id, t)
	}
	if t == nil && r.Error == "" || t != nil && t.Waits() {
		wait := &run.Wait{Kind: run.KindCall, ExpiresAt: tx.Run.Deadline}
		if err := tx.AddEvent(run.Event{Type: run.ActionWaits, ActionID: id, Wait: wait}); err != nil {
			return err
		}
	}
	return tx.AddEvent(run.Event{Type: run.ActionFinished, ActionID: id,
		Finished: effect.CallAnswer{Result: r.Result, Error: r.Error}.Finished()})
}
