package unit

import (
	"strings"

	"github.com/countersign-run/countersign/shared/agent/provenance"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// AppendLastMessage adds the run's last message and its outcome to the thread. The first words bytes of the message are
// the model's own. The thread becomes open to the next run. If the run had exactly one effect, the thread is named
// after it. A run that only compresses its thread adds no message.
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
	tx.Thread.Entitle(run.Heading(tx.Ex.Toolbox.Tools, tx.State))
	last := &tx.messages[len(tx.messages)-1]
	last.Attachments = attachment.Made(tx.State.Made)
	last.Words, last.Outcome = words, run.OutcomeLine(tx.Ex.Toolbox.Tools, tx.State, end)
	last.Moments = run.MomentsIn(tx.Ex.Toolbox.Tools, tx.State, last.Text+"\n"+last.Outcome, tx.Now)
	last.Read = provenance.First(tx.Ex.Toolbox.Tools, tx.State)
	return readAddresses(tx, last)
}

// readAddresses records which addresses in a run's last words come from text that was read.
func readAddresses(tx *Tx, last *run.Message) error {
	words := last.Text[:min(last.Words, len(last.Text))]
	if last.Read == nil || !strings.Contains(words, "://") {
		return nil
	}
	r, err := tx.Provenance()
	if err != nil {
		return err
	}
	last.Read.Addresses = r.Known(words)
	return nil
}
