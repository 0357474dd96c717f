package embedded

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// A writer is the only connection that writes. It avoids the locks, the conversions and the goroutine per statement of
// database/sql.
type writer struct {
	conn       driver.ConnPrepareContext // the driver's connection, to which the statements belong
	statements map[string]driver.Stmt
}

// mostStatements is the maximum number of statements that a connection keeps. Countersign's own documents need about
// thirty.
const mostStatements = 200

// on makes conn the connection for writes.
func (w *writer) on(conn any) error {
	c, ok := conn.(driver.ConnPrepareContext)
	if !ok {
		return fmt.Errorf("the driver's connection is a %T", conn)
	}
	if w.conn == c {
		return nil
	}
	err := w.close()
	w.conn = c
	return err
}

func (w *writer) close() error {
	var errs []error
	for _, st := range w.statements {
		errs = append(errs, st.Close())
	}
	w.conn, w.statements = nil, nil
	return errors.Join(errs...)
}

// prepared returns the statement, and prepares it at the first use.
func (w *writer) prepared(text string) (driver.Stmt, error) {
	if st, ok := w.statements[text]; ok {
		return st, nil
	}
	conn := w.conn
	if len(w.statements) >= mostStatements {
		if err := w.close(); err != nil {
			return nil, err
		}
		w.conn = conn
	}
	st, err := conn.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, err
	}
	if w.statements == nil {
		w.statements = map[string]driver.Stmt{}
	}
	w.statements[text] = st
	return st, nil
}

// exec runs a statement to its end. It takes no context: a transaction takes a few milliseconds, and it also contains
// the commits of other callers.
func (w *writer) exec(text string, args ...driver.Value) error {
	st, err := w.prepared(text)
	if err != nil {
		return err
	}
	_, err = st.(driver.StmtExecContext).ExecContext(context.Background(), named(args))
	return err
}

// query calls row with each row of the statement's result.
func (w *writer) query(text string, row func([]driver.Value), args ...driver.Value) (err error) {
	st, err := w.prepared(text)
	if err != nil {
		return err
	}
	rows, err := st.(driver.StmtQueryContext).QueryContext(context.Background(), named(args))
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
