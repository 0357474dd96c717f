package loop

import (
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// Import is the [Input] of a run that has ended elsewhere: its conversation, without its effects. The agent must see
// earlier runs verbatim. Nothing is asked or executed.
type Import struct {
	Contents []json.RawMessage // in the form that conversation.Own returns
	By       string            // signer of the model's answers (model.SignedBy)
	Recorded bool              // the contents include lines of the server
	Mark     string            // the mark of these lines
	Prompt   string            // for people
	Answer   string            // for people
}

func (i Import) check(context.Context, *unit.Execution, *registry.Agent) error { return nil }

func (i Import) needs(*unit.Execution, StartRequest) needs {
	return needs{message: i.Prompt, noModel: true}
}

func (i Import) stored(tx *unit.Tx) *run.Input {
	tx.Ex.Mark = i.Mark
	return seeThread(tx, &run.Input{Prompt: i.Prompt})
}

// begin ends the run at once.
func (i Import) begin(_ context.Context, tx *unit.Tx, _ approval.Places) error {
	tx.Run.Deadline = tx.Now
	if err := tx.SetStatus(run.Planning); err != nil {
		return err
	}
	end := &run.End{Status: run.Completed, Summary: i.Answer}
	if err := tx.AddEvent(run.Event{Type: run.RunEnded, End: end}); err != nil {
		return err
	}
	tx.Kept = &unit.Kept{Contents: i.Contents, Recorded: i.Recorded, By: i.By}
	return tx.AppendLastMessage(end, len(i.Answer))
}
