package loop

import (
	"context"
	"fmt"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/engine/upload"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// made are the files of an answer that the run keeps, by their index in the answer.
type made struct {
	files []attachment.File
	index []int
}

// filesToKeep returns the files of the answer that its commit stores. If they are too large for the commit, each is
// uploaded first. The commit then makes the upload a file of the run; if the process dies before that, the upload is
// deleted, and the model is asked again. Files beyond the limits of a run are left out, and the answer says so: so are
// all files of a page's agent, because no run keeps its conversation.
func filesToKeep(ctx context.Context, ex *unit.Execution, r *model.Reply) (m made, err error) {
	if len(r.Files) == 0 || ex.Agents.Get(ex.Run.Agent).Page {
		return m, nil
	}
	room := attachment.MaxUpload
	for _, f := range ex.State.Made {
		room -= f.Size
	}
	size := 0
	for _, f := range r.Files {
		size += len(f.Data)
	}
	for i, f := range r.Files {
		if len(f.Data) > room || len(ex.State.Made)+len(m.files) >= attachment.MaxFiles {
			continue
		}
		if size > attachment.MaxBytes {
			if ex.Files == nil {
				continue
			}
			up := upload.Uploads{Store: ex.Store, Files: ex.Files, Now: ex.Env.Now, Random: ex.Random}
			u, err := up.Add(ctx, ex.Run.UID, f)
			switch {
			case fault.Is(err, fault.Policy, fault.CodeTooMany):
				continue
			case err != nil:
				return m, unit.StoreError(err)
			}
			f = u.File(f.Name)
		}
		room -= len(r.Files[i].Data)
		m.files, m.index = append(m.files, f), append(m.index, i)
	}
	return m, nil
}

// keep stores the files with the run, and adds the references to the answer's content.
func (m made) keep(tx *unit.Tx, turn *run.Turn, r *model.Reply) (err error) {
	if len(r.Files) == 0 {
		return nil
	}
	if turn.Files, err = tx.AddMade(m.files); err != nil {
		return err
	}
	refs := map[int]attachment.Ref{}
	for i, f := range turn.Files {
		refs[m.index[i]] = f.Ref(tx.Run.ID)
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
