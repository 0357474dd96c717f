package conversation

import (
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/engine/journal"
)

// ClientHistory is a conversation that the client keeps: a run starts from it on an empty store, and continues as if it
// had never stopped. The caller guarantees that it is what [Loop.Conversation] returned.
type ClientHistory struct {
	Contents []json.RawMessage // up to the user's last message, or all of it if loop.Prompt has a new one
	Turns    []ClientTurn      // the model's answers since then
}

// ClientTurn is one answer of the model and the known responses to its calls.
type ClientTurn struct {
	Content   json.RawMessage
	Responses []*model.Response // one for each call, in order; nil for a call that waits
}

// Conversation is a run in the form from which a [ClientHistory] is made.
type Conversation struct {
	Contents *model.Contents // verbatim; where calls wait, the last content is the one that asks for them
	Calls    []TurnCall      // all calls of that content; nil where nothing waits
	End      *run.End        // nil while a call waits
}

// TurnCall is a call of a turn of which at least one waits.
type TurnCall struct {
	Action   *run.Action
	Response *model.Response // nil while it waits
	Model    string          // the name of the model that asked for it
}

// Restore adds a client's conversation to the run as the run's own events.
func Restore(tx *journal.Tx, k *ClientHistory) error {
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

func restoreTurn(tx *journal.Tx, t ClientTurn) error {
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

// restoreAnswer adds what became of a call. One that is not carried out in this process waited for it: a page's, even
// if the page no longer has the tool, or that of an effect, which a run of its own carried out.
func restoreAnswer(tx *journal.Tx, id string, t *tool.Tool, r *model.Response) error {
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
