package unit

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/blob"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Snapshot is one process's knowledge of one run: the documents that it has read, and the state that they contain.
type Snapshot struct {
	ID     string // the run's ID
	Docs   map[string]store.Doc
	Run    run.Run
	Events []run.Event
	State  *run.State

	later map[string]bool // paths of documents with members that a later release has written

	store store.Store
	files blob.Store
	bytes map[string][]byte // of uploaded files, by object
	clock clock
}

// newSnapshot returns a snapshot of the run that has read nothing yet.
func newSnapshot(l *Env, runID string) Snapshot {
	return Snapshot{ID: runID, Docs: map[string]store.Doc{}, store: l.Store, files: l.Files,
		bytes: map[string][]byte{}, clock: clock{local: l.Now}}
}

// Read reads documents into the cache in one round trip and replaces those that were there.
func (s *Snapshot) Read(ctx context.Context, paths ...string) error {
	sent := s.clock.local()
	docs, err := s.store.Get(ctx, paths...)
	if err != nil {
		return StoreError(err)
	}
	for _, d := range docs {
		s.Docs[d.Path] = d
		s.clock.observe(d.ReadTime, sent)
	}
	return nil
}

// Load reads the run and the documents at the other paths, and folds the run's events.
func (s *Snapshot) Load(ctx context.Context, also ...string) error {
	if err := s.Read(ctx, append([]string{document.RunPath(s.ID)}, also...)...); err != nil {
		return err
	}
	return s.fold(ctx)
}

// LoadRead uses a run's document that was already read, and folds the run's events.
func (s *Snapshot) LoadRead(ctx context.Context, d store.Doc) error {
	s.Docs[d.Path] = d
	return s.fold(ctx)
}

func (s *Snapshot) fold(ctx context.Context) error {
	d := s.Docs[document.RunPath(s.ID)]
	if !d.Exists() {
		s.Run, s.Events, s.State = run.Run{}, nil, &run.State{}
		return nil
	}
	s.Run = run.Run{}
	if err := s.decode(d, &s.Run); err != nil {
		return err
	}
	chunks, err := s.readChunks(ctx, s.Run.Log.ChunkPaths(d.Path, "events"))
	if err != nil {
		return err
	}
	if s.Events, err = s.Run.Log.All(chunks...); err != nil {
		return err
	}
	s.State, err = run.Fold(s.Events)
	return err
}

// decode decodes a document that a transition can write. It notes a document of a later release ([document.Put]).
func (s *Snapshot) decode(d store.Doc, into any) error {
	later, err := document.DecodeKnown(d, into)
	if later && s.later == nil {
		s.later = map[string]bool{}
	}
	if later || s.later[d.Path] {
		s.later[d.Path] = later
	}
	return err
}

// readChunks returns the content of documents that never change, such as the older parts of a log. It reads only those
// that are not cached.
func (s *Snapshot) readChunks(ctx context.Context, paths []string) ([]json.RawMessage, error) {
	var missing []string
	for _, p := range paths {
		if _, ok := s.Docs[p]; !ok {
			missing = append(missing, p)
		}
	}
	for page := range slices.Chunk(missing, store.MaxReads) {
		if err := s.Read(ctx, page...); err != nil {
			return nil, err
		}
	}
	out := make([]json.RawMessage, len(paths))
	for i, p := range paths {
		out[i] = s.Docs[p].Data
	}
	return out, nil
}

// prefetch adds the user's document and the thread to the needed paths, unless they are cached. Later steps need them,
// and one round trip then serves both.
func (s *Snapshot) prefetch(need []string) []string {
	for _, p := range []string{document.UserPath(s.Run.UID), document.ThreadPath(s.Run.ThreadID)} {
		if _, ok := s.Docs[p]; !ok && s.Run.ID != "" && !slices.Contains(need, p) {
			need = append(need, p)
		}
	}
	return need
}

// reload reads all mutable documents of the cache again, and folds the run's events.
func (s *Snapshot) reload(ctx context.Context) error {
	paths := []string{document.RunPath(s.ID)}
	for p := range s.Docs {
		if p != paths[0] && !document.IsChunk(p) {
			paths = append(paths, p)
		}
	}
	if err := s.Read(ctx, paths...); err != nil {
		return err
	}
	return s.fold(ctx)
}

// fork returns a copy for another goroutine. It has the run and its events, and no other documents.
func (s *Snapshot) fork() Snapshot {
	path := document.RunPath(s.ID)
	f := *s
	f.Docs, f.Events, f.bytes = map[string]store.Doc{}, slices.Clip(s.Events), map[string][]byte{}
	for _, p := range append(s.Run.Log.ChunkPaths(path, "events"), path) {
		if d, ok := s.Docs[p]; ok {
			f.Docs[p] = d
		}
	}
	return f
}

// join adds what a fork has read and committed.
func (s *Snapshot) join(f *Snapshot) {
	maps.Copy(s.Docs, f.Docs)
	s.Run, s.Events, s.State, s.clock = f.Run, f.Events, f.State, f.clock
}
