package loop

import (
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/journal"
)

// Imported is a run of a conversation from elsewhere: its words, without its effects.
type Imported struct {
	Contents []json.RawMessage // in the form that conversation.Own returns
	By       string            // signer of the model's answers (model.SignedBy)
	Recorded bool              // the contents include lines of the server
	Mark     string            // the mark of these lines
	Prompt   string            // for people
	Answer   string            // for people
}

// Import adds an ended run to a thread of the agent. The thread has the ID in the request; if it does not exist, it is
// created with the request's title. The agent must see earlier runs verbatim. Nothing is asked or carried out.
func Import(ctx context.Context, l *Loop, req StartRequest, in Imported) error {
	ex := l.NewExecution(run.NewID(l.Random), nil)
	req.Prompt = in.Prompt
	ex.Mark = in.Mark
	if ex.Agents.Get(req.Agent) == nil {
		return fault.NotFound()
	}
	ex.State = &run.State{}
	return ex.Transition(ctx, func(tx *journal.Tx) error {
		if tx.Run.ID != "" {
			return nil
		}
		if err := checkMayStart(tx, req); err != nil {
			return err
		}
		tx.Run = run.Run{ID: ex.ID, UID: req.UID, ThreadID: req.ThreadID, Agent: tx.Run.Agent, CreatedAt: tx.Now,
			Deadline: tx.Now}
		if err := openThread(tx, req, req.ThreadID); err != nil {
			return err
		}
		if err := tx.AddEvent(run.Event{Type: run.RunQueued, Queued: newInput(tx, req)}); err != nil {
			return err
		}
		if err := tx.AppendMessage(run.RoleUser, "", "%s", in.Prompt); err != nil {
			return err
		}
		if err := tx.SetStatus(run.Planning); err != nil {
			return err
		}
		end := &run.End{Status: run.Completed, Summary: in.Answer}
		if err := tx.AddEvent(run.Event{Type: run.RunEnded, End: end}); err != nil {
			return err
		}
		tx.Kept = &journal.Kept{Contents: in.Contents, Recorded: in.Recorded, By: in.By}
		return tx.AppendLastMessage(end, len(in.Answer))
	})
}
