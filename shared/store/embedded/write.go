package embedded

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// The statements of a transaction. It first reads the documents that its commits concern, so that Go can check each
// commit's preconditions under the file's lock. A commit that conflicts has then written nothing that must be undone,
// and unchanged columns are not written, which saves writing their indexes.
const (
	beginSQL    = `BEGIN IMMEDIATE`
	commitSQL   = `COMMIT`
	rollbackSQL = `ROLLBACK`
	removeSQL   = `DELETE FROM documents WHERE rowid = ?`
	tickSQL     = `UPDATE clock SET last = ?`
)

// withOwn calls f with the writer's connection. The caller holds s.using.
func (s *Store) withOwn(ctx context.Context, f func() error) (err error) {
	conn, err := s.writer.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = closing(err, conn) }()
	return conn.Raw(func(raw any) error {
		if err := s.own.on(raw); err != nil {
			return err
		}
		return f()
	})
}

// writeTogether writes one transaction. ctx is the leader's, and limits only the wait for the file's lock.
func (s *Store) writeTogether(ctx context.Context, take func() []*member) (err error) {
	s.using.Lock()
	defer s.using.Unlock()
	return s.withOwn(ctx, func() error {
		if err := withRetries(ctx, busyTimeout, func() error { return s.own.exec(beginSQL) }); err != nil {
			return err
		}
		taken := take()
		if err := s.transact(taken); err != nil {
			// A failed rollback has nothing to undo: SQLite itself rolls back after some errors.
			_ = s.own.exec(rollbackSQL)
			return err
		}
		s.shorten()
		return nil
	})
}

// transact decides the commits one after the other and writes the result of all. A commit that conflicts gets its
// error, and the others are written without it.
func (s *Store) transact(taken []*member) error {
	b, err := s.lookUp(taken)
	if err != nil {
		return err
	}
	for _, m := range taken {
		m.err = b.decide(m.commit, max(micros(s.now()), s.seen.Load()+1))
	}
	if b.ticked {
		err = s.own.exec(tickSQL, b.clock)
	}
	for _, d := range b.documents {
		if err == nil {
			err = d.save(&s.own)
		}
	}
	if err != nil {
		return err
	}
	err = s.own.exec(commitSQL)
	if err == nil && b.ticked {
		err = s.newest.advance(b.clock)
	}
	for _, m := range taken {
		switch {
		case m.err != nil:
		case err != nil: // the commits may have been applied
			s.watchers.Committed(m.asked, nil)
		default:
			s.watchers.Committed(m.asked, m.versions)
		}
	}
	return err
}

// A batch holds the documents that a transaction concerns, as they were read and as the commits change them.
type batch struct {
	clock     int64
	ticked    bool
	documents []*document
	byPath    map[string]*document
}

// A document is one document of a batch.
type document struct {
	path  string
	rowid int64
	was   state
	is    state
}

// A state is the content of a document, or the zero value if the document does not exist.
type state struct {
	version int64
	fields  string
	keys    []field // the same fields as keys; only set by writes
	data    []byte  // only set by writes
}

// lookUp reads the versions and fields of all documents that the commits concern.
func (s *Store) lookUp(taken []*member) (*batch, error) {
	b := &batch{byPath: map[string]*document{}}
	var paths []driver.Value
	for _, m := range taken {
		for _, w := range m.writes {
			if b.byPath[w.path] == nil {
				d := &document{path: w.path}
				b.byPath[w.path], b.documents, paths = d, append(b.documents, d), append(paths, w.path)
			}
		}
	}
	paths = padded(paths)
	return b, s.own.query(lookUpSQL(len(paths)), func(row []driver.Value) {
		b.clock = row[1].(int64)
		if row[2] == nil {
			return
		}
		d := b.documents[row[0].(int64)]
		d.rowid = row[2].(int64)
		d.was = state{version: row[3].(int64), fields: row[4].(string)}
		d.is = d.was
	}, paths...)
}

// decide applies a commit to the batch if all of its preconditions hold. The commit's version is later than all earlier
// ones, and at least atLeast.
func (b *batch) decide(c *commit, atLeast int64) error {
	for i, w := range c.writes {
		if !w.holds(b.byPath[w.path].is.version) {
			return fmt.Errorf("write %d: %w", i+1, store.ErrConflict)
		}
	}
	b.clock, b.ticked = max(b.clock+1, atLeast), true
	for i, w := range c.writes {
		d := b.byPath[w.path]
		switch w.op {
		case store.OpDelete:
			d.is = state{}
			continue
		case store.OpCreate, store.OpUpdate:
			d.is = state{b.clock, w.fields, w.keys, w.data}
		}
		c.versions[i] = time.UnixMicro(d.is.version).UTC()
	}
	return nil
}

// holds reports whether the write's precondition holds for a document with this version. A version of 0 means that the
// document does not exist.
func (w write) holds(version int64) bool {
	switch {
	case w.op == store.OpCreate:
		return version == 0
	case w.op == store.OpDelete && w.version == 0:
		return true
	}
	return version != 0 && version == w.version
}

// save writes the document's new state.
func (d *document) save(w *writer) error {
	existed, exists := d.was.version != 0, d.is.version != 0
	switch {
	case d.was.version == d.is.version:
		return nil
	case !existed:
		return d.create(w)
	case !exists:
		return w.exec(removeSQL, d.rowid)
	}
	return d.update(w)
}

func (d *document) create(w *writer) error {
	collection, _ := store.SplitPath(d.path)
	args := []driver.Value{d.path, collection, d.is.version, d.is.fields, d.is.data}
	var indexed set
	for _, f := range d.is.keys {
		if i, has := slices.BinarySearch(columns, f.name); has {
			indexed, args = indexed|1<<i, append(args, f.key)
		}
	}
	return w.exec(createSQL(indexed), args...)
}

// keyOf returns the key of the named field, or "" if it is absent.
func keyOf(fields []field, name string) string {
	for _, f := range fields {
		if f.name == name {
			return f.key
		}
	}
	return ""
}
