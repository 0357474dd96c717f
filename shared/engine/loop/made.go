package loop

import (
	"fmt"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// keepFiles stores the files of the answer with the run, and adds the references to the answer's content.
func keepFiles(tx *unit.Tx, files effect.KeptFiles, turn *run.Turn, r *model.Reply) (err error) {
	if len(r.Files) == 0 {
		return nil
	}
	if turn.Files, err = files.Store(tx); err != nil {
		return err
	}
	refs := map[int]attachment.Ref{}
	for i, f := range turn.Files {
		refs[files.Index(i)] = f.Ref(tx.Run.ID)
	}
	turn.Content, err = model.BindFiles(r.Content, refs)
	return err
}

// Texts that follow the model's text if the answer had more than text.
const (
	notShown = "[The answer also had a picture or another file, which cannot be shown here.]"
	notKept  = "[The answer also had a picture or another file, which was not kept.]"
)

// noteOf returns the server's note about the files of an answer, or "".
func noteOf(r *model.Reply, turn *run.Turn) string {
	switch {
	case len(turn.Files) < len(r.Files):
		return notKept
	case model.HasLostFile(turn.Content):
		return notShown
	case r.Text == "" && len(turn.Files) == 1:
		return fmt.Sprintf("[The answer is the file %s.]", turn.Files[0].Name)
	case r.Text == "" && len(turn.Files) > 1:
		return fmt.Sprintf("[The answer is %d files.]", len(turn.Files))
	}
	return ""
}
