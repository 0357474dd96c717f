package approval

import (
	"cmp"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// WaitForAnswer makes a call wait for the client until the call's or the run's time is up, or until the user sends
// another message. The thread names the run for that case.
func WaitForAnswer(tx *unit.Tx, id string, t *tool.Tool) error {
	wait := &run.Wait{Kind: run.KindCall, ExpiresAt: tx.Run.Deadline}
	ttl := cmp.Or(tx.Limits().AnswerTTL, answerTTL)
	if t != nil && t.Wait > 0 {
		ttl = t.Wait
	}
	if at := tx.Now.Add(ttl); at.Before(wait.ExpiresAt) {
		wait.ExpiresAt = at
	}
	if err := tx.AddEvent(run.Event{Type: run.ActionWaits, ActionID: id, Wait: wait}); err != nil {
		return err
	}
	thread := tx.Thread
	if thread == nil {
		thread = &run.Thread{}
		if _, err := tx.Doc(document.ThreadPath(tx.Run.ThreadID), thread); err != nil {
			return err
		}
	}
	if thread.AddWaiting(tx.Run.ID) {
		tx.Thread = thread
	}
	return nil
}
