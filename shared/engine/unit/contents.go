package unit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store/document"
)

// WindowContents returns the entries of the thread's contents that are in the run's context window, oldest first. It
// reads the thread if it has not been read, and in one more round trip the chunks, which do not change.
func (s *Snapshot) WindowContents(ctx context.Context, window run.ContextWindow) ([]run.Content, error) {
	if window.Last < max(window.First, 1) {
		return nil, nil
	}
	path := document.ThreadPath(s.Run.ThreadID)
	if _, ok := s.Docs[path]; !ok {
		if err := s.Read(ctx, path, document.UserPath(s.Run.UID)); err != nil { // later steps need the user too
			return nil, err
		}
	}
	var t run.Thread
	if err := document.Decode(s.Docs[path], &t); err != nil {
		return nil, err
	}
	chunks, err := s.readChunks(ctx, t.Contents.Paths(path, run.ContentChunks, window.First, window.Last))
	if err != nil {
		return nil, err
	}
	return entriesIn(t, window, chunks)
}

// entriesIn returns the entries of the thread's contents that are in the context window. chunks hold the older entries.
func entriesIn(t run.Thread, window run.ContextWindow, chunks []json.RawMessage) ([]run.Content, error) {
	var all []run.Content
	for _, c := range chunks {
		var part []run.Content
		if err := json.Unmarshal(c, &part); err != nil {
			return nil, fmt.Errorf("unit: a chunk of thread %s cannot be read: %w", t.ID, err)
		}
		all = append(all, part...)
	}
	first := t.Contents.First() - int64(len(all)) // missing chunks are the oldest
	if window.Last >= t.Contents.First() {
		all = append(all, t.Contents.Tail...)
	} else { // missing chunks are the newest
		i, _ := slices.BinarySearch(t.Contents.Chunks, window.First+1)
		first = t.Contents.Chunks[max(0, i-1)]
	}
	from, to := window.First-first, window.Last-first+1
	if from < 0 || to > int64(len(all)) {
		return nil, fmt.Errorf("unit: contents %d to %d of thread %s are missing; it has %d from %d on", window.First,
			window.Last, t.ID, len(all), first)
	}
	return all[from:to], nil
}

// EndedRun returns the state of an earlier run of the thread. The run has ended, so its state no longer changes.
func (s *Snapshot) EndedRun(ctx context.Context, id string) (*run.State, error) {
	path := document.RunPath(id)
	docs, err := s.readChunks(ctx, []string{path})
	if err != nil {
		return nil, err
	}
	var r run.Run
	if err := json.Unmarshal(docs[0], &r); err != nil {
		return nil, fmt.Errorf("unit: %s cannot be read: %w", path, err)
	}
	chunks, err := s.readChunks(ctx, r.Log.ChunkPaths(path, "events"))
	if err != nil {
		return nil, err
	}
	return folded(r, chunks)
}

// folded returns the state of a run. chunks hold the older events.
func folded(r run.Run, chunks []json.RawMessage) (*run.State, error) {
	events, err := r.Log.All(chunks...)
	if err != nil {
		return nil, err
	}
	return run.Fold(events)
}
