package unit

import (
	"encoding/json"
	"fmt"

	"github.com/countersign-run/countersign/shared/agent/provenance"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/taint"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Provenance returns the texts that the run's model has seen before its newest turn, by author. It includes earlier
// runs of the thread, as far as the model sees them. It is needed only for calls that would run without approval or are
// shown to the user. An execution builds it once.
func (tx *Tx) Provenance() (*taint.Record, error) {
	ex := tx.Ex
	if ex.provenance == nil {
		r, err := provenance.New(provenance.Run{
			Input:  tx.State.Input,
			Tools:  func() tool.Set { return ex.Toolbox.Tools },
			Shown:  []tool.Set{ex.Toolbox.Agent(tx.Run.Agent), ex.Toolbox.Page(tx.State.Input)},
			Has:    func(name string) bool { return tx.ToolIn(name, false) != nil },
			Thread: tx.windowContents,
			Ended:  tx.endedRun,
		})
		if err != nil {
			return nil, err
		}
		ex.provenance = r
	}
	return ex.provenance.Before(len(tx.State.Turns), ex.Events), nil
}

// windowContents is [Execution.WindowContents] within a transition.
func (tx *Tx) windowContents(window run.ContextWindow) ([]run.Content, error) {
	if window.Last < max(window.First, 1) {
		return nil, nil
	}
	var t run.Thread
	path := document.ThreadPath(tx.Run.ThreadID)
	if _, err := tx.Doc(path, &t); err != nil {
		return nil, err
	}
	chunks, err := tx.chunks(t.Contents.Paths(path, run.ContentChunks, window.First, window.Last))
	if err != nil {
		return nil, err
	}
	return entriesIn(t, window, chunks)
}

// endedRun is [Execution.EndedRun] within a transition.
func (tx *Tx) endedRun(id string) (*run.State, error) {
	var r run.Run
	path := document.RunPath(id)
	if d, err := tx.Doc(path, &r); err != nil {
		return nil, err
	} else if !d.Exists() {
		return nil, fmt.Errorf("unit: run %s of the conversation is missing", id)
	}
	chunks, err := tx.chunks(r.Log.ChunkPaths(path, "events"))
	if err != nil {
		return nil, err
	}
	return folded(r, chunks)
}

// chunks returns documents that never change, within a transition. It returns errMissingDocs if some are not cached.
func (tx *Tx) chunks(paths []string) (all []json.RawMessage, err error) {
	var missing errMissingDocs
	for _, p := range paths {
		d, read := tx.Ex.Docs[p]
		if !read && len(missing) < store.MaxReads-2 { // leaves room for the user's document and the thread
			missing = append(missing, p)
		}
		all = append(all, d.Data)
	}
	if missing != nil {
		return nil, missing
	}
	return all, nil
}
