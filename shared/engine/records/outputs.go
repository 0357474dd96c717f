package records

import (
	"context"
	"errors"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/output"
)

// outputPage is the number of outputs in one page. Each has up to 16 parts, and one commit deletes at most deletePage
// documents.
const outputPage = 20

// deleteOutputs deletes the stored output of the actions page by page, each with its parts in one commit. It runs
// before the deletion of the run's document, which names the outputs. A process that continues to write later finds no
// document to add to. If a process writes at the same time, deleteOutputs reads the output again.
func (r *Records) deleteOutputs(ctx context.Context, runID string, actions []string) error {
	for page := range slices.Chunk(actions, outputPage) {
		if err := outOfTime(ctx); err != nil {
			return err
		}
		for try := 0; ; try++ {
			err := r.deleteOutputPage(ctx, runID, page)
			if !errors.Is(err, store.ErrConflict) || try == maxRaces {
				if err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

func (r *Records) deleteOutputPage(ctx context.Context, runID string, actions []string) error {
	kept, err := r.keptOutputs(ctx, runID, actions)
	if err != nil || len(kept) == 0 {
		return err
	}
	var writes []store.Write
	for _, k := range kept {
		parts, own := k.Deletes()
		writes = append(append(writes, parts...), own)
	}
	_, err = r.Store.Commit(ctx, writes...)
	return err
}

// keptOutputs reads the stored output of the actions.
func (r *Records) keptOutputs(ctx context.Context, runID string, actions []string) (kept []*output.Kept, err error) {
	paths := make([]string, len(actions))
	for i, id := range actions {
		paths[i] = document.OutputPath(runID, id)
	}
	docs, err := r.getFound(ctx, paths)
	if err != nil {
		return nil, err
	}
	for _, d := range docs {
		k, err := output.Of(d, runID, document.ID(d))
		if err != nil {
			return nil, err
		}
		kept = append(kept, k)
	}
	return kept, nil
}

// Output is the output of an action in an export.
type Output struct {
	ActionID string `json:"actionId"`
	Bytes    int64  `json:"bytes"`
	Data     []byte `json:"data"`
}

// exportOutputs passes the stored output of the run's actions. Output that is deleted in the meantime is left out.
func (r *Records) exportOutputs(ctx context.Context, got run.Run, each func(Item) error) error {
	kept, err := r.keptOutputs(ctx, got.ID, got.Outputs)
	if err != nil {
		return err
	}
	for _, k := range kept {
		o := Output{ActionID: k.ActionID(), Bytes: k.Bytes}
		err := k.From(ctx, r.Store, 0, func(_ int64, b []byte) error { o.Data = append(o.Data, b...); return nil })
		if errors.Is(err, output.ErrGone) {
			continue
		}
		if err == nil {
			err = each(Item{ItemOutput, got.ID, o})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
