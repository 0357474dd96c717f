package journal

import (
	"strings"

	"github.com/countersign-run/countersign/shared/run"
)

// AppendLastMessage adds the message that the run ends with, and the run's outcome. The first words bytes of it are the
// model's own. The thread is open to the next run, and called by what was done, if that was
// one thing. A run that compresses its thread says nothing.
func (tx *Tx) AppendLastMessage(end *run.End, words int) error {
	if err := readThread(tx); err != nil {
		return err
	}
	if tx.Thread.OpenRun == tx.Run.ID {
		tx.Thread.OpenRun = ""
	}
	if tx.State.Input.Compress {
		return nil
	}
	if err := tx.AppendMessage(run.RoleAssistant, "", "%s", end.Summary); err != nil {
		return err
	}
	tx.Thread.Entitle(run.Heading(tx.Ex.Tools, tx.State))
	last := &tx.messages[len(tx.messages)-1]
	last.Words, last.Outcome = words, run.OutcomeLine(tx.Ex.Tools, tx.State, end)
	last.Read = firstReading(tx)
	return readAddresses(tx, last)
}

// readAddresses notes which addresses in a run's last words were read.
func readAddresses(tx *Tx, last *run.Message) error {
	words := last.Text[:min(last.Words, len(last.Text))]
	if last.Read == nil || !strings.Contains(words, "://") {
		return nil
	}
	r, err := Heard(tx)
	if err != nil {
		return err
	}
	last.Read.Addresses = r.Known(words)
	return nil
}
