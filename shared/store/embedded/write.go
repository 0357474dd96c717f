package embedded

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// The statements of a transaction. The documents that it is about are read first, so that the preconditions of each
// commit are decided in Go, under the file's lock: a commit that conflicts has written nothing that would have to be
// undone, and fields that stay the same are not written, which spares their indexes.
const (
	beginSQL    = `BEGIN IMMEDIATE`
	commitSQL   = `COMMIT`
	rollbackSQL = `ROLLBACK`
	// lookUpSQL returns a row for each path, its document or NULLs, and the clock.
	lookUpSQL = `SELECT wanted.key, clock.last, d.rowid, d.version, d.fields
FROM clock CROSS JOIN json_each(?) AS wanted LEFT JOIN documents AS d ON d.path = wanted.value`
	createSQL = `INSERT INTO documents (path, collection, id, version, fields, data) VALUES (?, ?, ?, ?, ?, ?)`
	updateSQL = `UPDATE documents SET version = ?, fields = ?, data = ? WHERE rowid = ?`
	renewSQL  = `UPDATE documents SET version = ?, data = ? WHERE rowid = ?`
	removeSQL = `DELETE FROM documents WHERE rowid = ?`
	tickSQL   = `UPDATE clock SET last = ?`
)

var writerSQL = []string{beginSQL, commitSQL, rollbackSQL, lookUpSQL, createSQL, updateSQL, renewSQL, removeSQL,
	tickSQL, logSQL, checkpointSQL}

// A writer is the one connection that writes, without the locks, the conversions and the goroutine per statement of
// database/sql.
type writer struct {
	conn       any // the driver's, which the statements belong to
	statements map[string]driver.Stmt
}

// on runs f with the statements of the connection, which are prepared once.
func (w *writer) on(conn any) error {
	if w.conn == conn {
		return nil
	}
	if err := w.close(); err != nil {
		return err
	}
	c, ok := conn.(driver.ConnPrepareContext)
	if !ok {
		return fmt.Errorf("the driver's connection is a %T", conn)
	}
	w.statements = make(map[string]driver.Stmt, len(writerSQL))
	for _, text := range writerSQL {
		st, err := c.PrepareContext(context.Background(), text)
		if err != nil {
			return errors.Join(err, w.close())
		}
		w.statements[text] = st
	}
	w.conn = conn
	return nil
}

func (w *writer) close() error {
	var errs []error
	for _, st := range w.statements {
		errs = append(errs, st.Close())
	}
	w.conn, w.statements = nil, nil
	return errors.Join(errs...)
}

// exec runs a statement to its end: a transaction that has begun takes some milliseconds, and nobody's context ends it
// for others.
func (w *writer) exec(text string, args ...driver.Value) error {
	_, err := w.statements[text].(driver.StmtExecContext).ExecContext(context.Background(), named(args))
	return err
}

// query calls row with each row of the statement.
func (w *writer) query(text string, row func([]driver.Value), args ...driver.Value) (err error) {
	rows, err := w.statements[text].(driver.StmtQueryContext).QueryContext(context.Background(), named(args))
	if err != nil {
		return err
	}
	defer func() { err = closing(err, rows) }()
	values := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(values); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		row(values)
	}
}

func named(args []driver.Value) []driver.NamedValue {
	all := make([]driver.NamedValue, len(args))
	for i, v := range args {
		all[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return all
}

// writeTogether writes one transaction. ctx is the leader's, and bounds only the wait for the file's lock.
func (s *Store) writeTogether(ctx context.Context, take func() []*member) (err error) {
	conn, err := s.writer.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = closing(err, conn) }()
	return conn.Raw(func(raw any) error {
		if err := s.own.on(raw); err != nil {
			return err
		}
		if err := withRetries(ctx, func() error { return s.own.exec(beginSQL) }); err != nil {
			return err
		}
		taken := take()
		if err := s.transact(taken); err != nil {
			// A rollback that fails has nothing to undo: SQLite itself rolls back after some errors.
			_ = s.own.exec(rollbackSQL)
			return err
		}
		s.shorten()
		return nil
	})
}

// transact decides the commits one after the other and writes what follows from them all. One that conflicts gets its
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
	for _, m := range taken {
		if m.err == nil { // after an error of the whole, too: it may have been applied
			s.watchers.Committed(m.asked)
		}
	}
	return err
}

// A batch is the state of the documents that a transaction is about, as it was found and as the commits change it.
type batch struct {
	clock     int64
	ticked    bool
	documents []*document
	byPath    map[string]*document
}

// A document is one of a batch.
type document struct {
	path  string
	rowid int64
	was   state
	is    state
}

// A state is what a document has, or the zero value if it does not exist.
type state struct {
	version int64
	fields  string
	data    []byte // only of what was written
}

// lookUp reads the versions and fields of all documents that the commits are about, with one statement.
func (s *Store) lookUp(taken []*member) (*batch, error) {
	b := &batch{byPath: map[string]*document{}}
	var paths []string
	for _, m := range taken {
		for _, w := range m.writes {
			if b.byPath[w.path] == nil {
				d := &document{path: w.path}
				b.byPath[w.path], b.documents, paths = d, append(b.documents, d), append(paths, w.path)
			}
		}
	}
	wanted, err := json.Marshal(paths)
	if err != nil {
		return nil, err
	}
	return b, s.own.query(lookUpSQL, func(row []driver.Value) {
		b.clock = row[1].(int64)
		if row[2] == nil {
			return
		}
		d := b.documents[row[0].(int64)]
		d.rowid = row[2].(int64)
		d.was = state{version: row[3].(int64), fields: row[4].(string)}
		d.is = d.was
	}, string(wanted))
}

// decide applies a commit to the batch if each of its preconditions holds. Its version is later than all before it, and
// atLeast the given one.
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
			d.is = state{b.clock, w.fields, w.data}
		}
		c.versions[i] = time.UnixMicro(d.is.version).UTC()
	}
	return nil
}

// holds reports whether the write's precondition holds for a document of the version, 0 if there is none.
func (w write) holds(version int64) bool {
	switch {
	case w.op == store.OpCreate:
		return version == 0
	case w.op == store.OpDelete && w.version == 0:
		return true
	}
	return version != 0 && version == w.version
}

// save writes what has become of the document.
func (d *document) save(w *writer) error {
	existed, exists := d.was.version != 0, d.is.version != 0
	switch {
	case d.was.version == d.is.version:
		return nil
	case !existed:
		collection, id := store.SplitPath(d.path)
		return w.exec(createSQL, d.path, collection, id, d.is.version, d.is.fields, d.is.data)
	case !exists:
		return w.exec(removeSQL, d.rowid)
	case d.was.fields == d.is.fields:
		return w.exec(renewSQL, d.is.version, d.is.data, d.rowid)
	}
	return w.exec(updateSQL, d.is.version, d.is.fields, d.is.data, d.rowid)
}
