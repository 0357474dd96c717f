package embedded

import (
	"context"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// Commit implements [store.Store]. Commits that arrive while another one is being written are written together, in one
// transaction with one sync. Each of them succeeds or conflicts on its own. If ctx ends while a commit waits, it is
// unknown whether that commit is applied.
func (s *Store) Commit(ctx context.Context, writes ...store.Write) ([]time.Time, error) {
	if err := store.CheckCommit(writes); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, store.Interrupted("commit", err)
	}
	c, err := newCommit(writes)
	if err != nil {
		return nil, wrap(ctx, "commit", err)
	}
	if err := s.group.join(ctx, c, s.writeTogether); err != nil {
		return nil, wrap(ctx, "commit", err)
	}
	return c.versions, nil
}

// A commit is one caller's commit, in the form in which it is stored.
type commit struct {
	writes   []write
	asked    []store.Write // for the watchers of their paths
	size     int           // of the documents in bytes
	versions []time.Time   // of the documents, set when the commit has succeeded
}

// A write is one write of a commit.
type write struct {
	op      store.Op
	path    string
	version int64 // required version of the document, or 0
	fields  string
	keys    []field // the same fields as keys
	data    []byte
}

func newCommit(writes []store.Write) (*commit, error) {
	c := &commit{asked: slices.Clone(writes), writes: make([]write, len(writes)),
		versions: make([]time.Time, len(writes))}
	for i, w := range writes {
		to := write{op: w.Op, path: w.Doc.Path}
		if !w.Doc.Version.IsZero() {
			to.version = micros(w.Doc.Version)
		}
		if w.Op == store.OpCreate || w.Op == store.OpUpdate {
			var err error
			if to.keys, err = fieldsOf(w.Doc.Fields); err != nil {
				return nil, err
			}
			if to.fields, err = encode(to.keys); err != nil {
				return nil, err
			}
			if to.data = w.Doc.Data; to.data == nil {
				to.data = []byte{} // an empty blob, not NULL
			}
		}
		c.writes[i] = to
		c.size += w.Doc.Size()
	}
	return c, nil
}

func micros(t time.Time) int64 { return t.UnixMicro() }
