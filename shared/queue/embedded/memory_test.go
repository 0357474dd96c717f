package embedded_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// memory is a store.Store that answers the one query of the queue, for tests in which time stands still.
type memory struct {
	mu    sync.Mutex
	docs  map[string]store.Doc
	clock int64 // a version is a count of commits, so that no two are alike
}

func newMemory() *memory { return &memory{docs: map[string]store.Doc{}} }

func (m *memory) Get(_ context.Context, paths ...string) ([]store.Doc, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []store.Doc
	for _, p := range paths {
		out = append(out, m.docs[p])
	}
	return out, nil
}

func (m *memory) Query(ctx context.Context, q store.Query) ([]store.Doc, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []store.Doc
	for _, d := range m.docs {
		if !d.Fields["due"].(time.Time).After(q.Where[0].Value.(time.Time)) {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b store.Doc) int {
		if c := a.Fields["due"].(time.Time).Compare(b.Fields["due"].(time.Time)); c != 0 {
			return c
		}
		return strings.Compare(a.Path, b.Path)
	})
	return out[:min(len(out), q.Limit)], ctx.Err()
}

func (m *memory) Commit(ctx context.Context, writes ...store.Write) ([]time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	next := maps.Clone(m.docs)
	var versions []time.Time
	for _, w := range writes {
		is := next[w.Doc.Path]
		if (w.Op == store.OpCreate && is.Exists()) || (w.Op != store.OpCreate && !is.Version.Equal(w.Doc.Version)) {
			return nil, store.ErrConflict
		}
		m.clock++
		w.Doc.Version = time.UnixMicro(m.clock)
		next[w.Doc.Path] = w.Doc
		if w.Op == store.OpDelete {
			delete(next, w.Doc.Path)
			w.Doc.Version = time.Time{}
		}
		versions = append(versions, w.Doc.Version)
	}
	m.docs = next
	return versions, nil
}

func (m *memory) Close() error { return nil }

// severed is a process's way to the store, which can be cut: what a process that was killed had in mind to write is
// not written.
type severed struct {
	store.Store
	cut atomic.Bool
}

func (s *severed) Query(ctx context.Context, q store.Query) ([]store.Doc, error) {
	if s.cut.Load() {
		return nil, store.ErrUnavailable
	}
	return s.Store.Query(ctx, q)
}

func (s *severed) Commit(ctx context.Context, writes ...store.Write) ([]time.Time, error) {
	if s.cut.Load() {
		return nil, store.ErrUnavailable
	}
	return s.Store.Commit(ctx, writes...)
}
