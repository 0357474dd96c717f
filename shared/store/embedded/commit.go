package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

const (
	tickSQL     = `UPDATE clock SET last = max(last + 1, ?) RETURNING last`
	createSQL   = `INSERT INTO documents (path, collection, id, version, fields, data) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
	updateSQL   = `UPDATE documents SET version = ?, fields = ?, data = ? WHERE path = ? AND version = ?`
	removeSQL   = `DELETE FROM documents WHERE path = ?`
	checkSQL    = `SELECT count(*) FROM documents WHERE path = ? AND version = ?`
	removeAtSQL = `DELETE FROM documents WHERE path = ? AND version = ?`
)

// Commit implements [store.Store] with one transaction that takes the write lock first.
func (s *Store) Commit(ctx context.Context, writes ...store.Write) ([]time.Time, error) {
	if err := store.CheckCommit(writes); err != nil {
		return nil, err
	}
	var tx *sql.Tx
	err := withRetries(ctx, func() (err error) {
		tx, err = s.writer.BeginTx(ctx, nil)
		return err
	})
	if err != nil {
		return nil, wrap(ctx, "commit", err)
	}
	versions, err := s.commitIn(ctx, tx, writes)
	if err == nil {
		err = tx.Commit()
		s.watchers.Committed(writes) // after an error, too: the commit may have been applied
	}
	if err == nil {
		return versions, nil
	}
	if undo := tx.Rollback(); undo != nil && !errors.Is(undo, sql.ErrTxDone) {
		err = errors.Join(err, undo)
	}
	return nil, wrap(ctx, "commit", err)
}

func (s *Store) commitIn(ctx context.Context, tx *sql.Tx, writes []store.Write) ([]time.Time, error) {
	var version int64
	if err := tx.StmtContext(ctx, s.tick).QueryRowContext(ctx,
		max(micros(s.now()), s.seen.Load()+1)).Scan(&version); err != nil {
		return nil, err
	}
	versions := make([]time.Time, len(writes))
	for i, w := range writes {
		done, err := s.write(ctx, tx, w, version)
		if err != nil {
			return nil, err
		}
		if !done {
			return nil, fmt.Errorf("write %d: %w", i+1, store.ErrConflict)
		}
		switch w.Op {
		case store.OpDelete:
		case store.OpCheck:
			versions[i] = w.Doc.Version
		default:
			versions[i] = time.UnixMicro(version).UTC()
		}
	}
	return versions, nil
}

// write reports whether the write's precondition held.
func (s *Store) write(ctx context.Context, tx *sql.Tx, w store.Write, version int64) (bool, error) {
	d := w.Doc
	exec := func(st *sql.Stmt, args ...any) (bool, error) {
		res, err := tx.StmtContext(ctx, st).ExecContext(ctx, args...)
		if err != nil {
			return false, err
		}
		n, err := res.RowsAffected()
		return n == 1, err
	}
	switch {
	case w.Op == store.OpDelete && d.Version.IsZero():
		_, err := exec(s.remove, d.Path)
		return true, err
	case w.Op == store.OpDelete:
		return exec(s.removeAt, d.Path, micros(d.Version))
	}
	if w.Op == store.OpCheck {
		n := 0
		err := tx.StmtContext(ctx, s.check).QueryRowContext(ctx, d.Path, micros(d.Version)).Scan(&n)
		return n == 1, err
	}
	fields, err := encodeFields(d.Fields)
	if err != nil {
		return false, err
	}
	data := append([]byte{}, d.Data...) // an empty blob, not NULL
	if w.Op == store.OpUpdate {
		return exec(s.update, version, fields, data, d.Path, micros(d.Version))
	}
	collection, id := store.SplitPath(d.Path)
	return exec(s.create, d.Path, collection, id, version, fields, data)
}

func micros(t time.Time) int64 { return t.UnixMicro() }
