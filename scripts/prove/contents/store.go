package contents

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/store"
)

// memory is a store in a map, which the processes of one walk share. It is quick, and fails on demand.
type memory struct {
	docs map[string]store.Doc
	now  func() time.Time
	last time.Time

	fuse  int  // commits until the process that uses it dies; 0: never
	after bool // it dies after the commit, and not before it
	dead  bool
	flaky func() (fails, done bool) // whether a commit returns ErrUnavailable, and whether it is stored
}

var _ store.Store = (*memory)(nil)

// errDied is the error of every call of a dead process.
var errDied = errors.New("contents: this process is dead")

func (m *memory) Get(_ context.Context, paths ...string) ([]store.Doc, error) {
	if m.dead {
		return nil, errDied
	}
	docs := make([]store.Doc, len(paths))
	for i, p := range paths {
		d := m.docs[p]
		d.Path, d.ReadTime = p, m.tick(0)
		docs[i] = d
	}
	return docs, store.CheckGet(paths)
}

// Query serves the sweep's query for due runs.
func (m *memory) Query(_ context.Context, q store.Query) ([]store.Doc, error) {
	if m.dead {
		return nil, errDied
	}
	if q.Collection != "runs" || q.OrderBy != "due" || len(q.Where) != 1 {
		return nil, fmt.Errorf("%w: nobody here asks for %+v", store.ErrInvalid, q)
	}
	var out []store.Doc
	for p, d := range m.docs {
		due := document.RunFieldsOf(d).Due
		if !due.IsZero() && strings.HasPrefix(p, "runs/") && !due.After(q.Where[0].Value.(time.Time)) {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b store.Doc) int { return strings.Compare(path.Base(a.Path), path.Base(b.Path)) })
	return out[:min(len(out), q.Limit)], nil
}

func (m *memory) Commit(_ context.Context, writes ...store.Write) ([]time.Time, error) {
	if m.dead {
		return nil, errDied
	}
	if err := store.CheckCommit(writes); err != nil {
		return nil, err
	}
	if m.fuse--; m.fuse == 0 {
		m.dead = true
		if m.after {
			_, err := m.write(writes)
			return nil, errors.Join(errDied, err)
		}
		return nil, errDied
	}
	fails, done := m.flaky()
	if fails && !done {
		return nil, store.ErrUnavailable
	}
	versions, err := m.write(writes)
	if fails && err == nil {
		return nil, store.ErrUnavailable
	}
	return versions, err
}

func (m *memory) write(writes []store.Write) ([]time.Time, error) {
	for _, w := range writes {
		there := m.docs[w.Doc.Path].Version
		if w.Op == store.OpCreate && !there.IsZero() || w.Op == store.OpUpdate && !there.Equal(w.Doc.Version) {
			return nil, store.ErrConflict
		}
	}
	versions := make([]time.Time, len(writes))
	for i, w := range writes {
		versions[i] = m.tick(time.Microsecond)
		w.Doc.Version = versions[i]
		m.docs[w.Doc.Path] = w.Doc
	}
	return versions, nil
}

// tick returns the store's time, at least d later than the last one returned.
func (m *memory) tick(d time.Duration) time.Time {
	m.last = m.last.Add(d)
	if now := m.now().UTC().Truncate(time.Microsecond); now.After(m.last) {
		m.last = now
	}
	return m.last
}

// Close does nothing.
func (m *memory) Close() error { return nil }
