package crash

import (
	"encoding/json"
	"fmt"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/testkit/invariants"
	"github.com/countersign-run/countersign/shared/tools/memory"
)

// ownNote is the tool that keeps a note about the user. Its effect is in the product's own store.
var ownNote = kind{name: "memory", tool: memory.Remember, mode: "draft"}

// remembered returns the notes of the trial's user as effects. A note's ID derives from its action's.
func (t *trial) remembered() (all []invariants.Effect) {
	book, err := memory.Read(t.ctx, t.env.store, t.uid)
	proof.Must(err)
	actions := map[string]string{}
	for n := range t.started() {
		for _, a := range t.view(n).Actions {
			actions[run.NoteID(a.ActionID)] = a.ActionID
		}
	}
	for _, note := range book.Notes {
		all = append(all, invariants.Effect{UID: t.uid, ActionID: actions[note.ID],
			Agrees: func(args json.RawMessage) error {
				var want struct{ Text string }
				if err := json.Unmarshal(args, &want); err != nil {
					return err
				}
				if note.Text != want.Text {
					return fmt.Errorf("the note is %q", note.Text)
				}
				return nil
			}})
	}
	return all
}
