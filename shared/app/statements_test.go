//go:build !race

package app_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"sync/atomic"
	"testing"
)

// statements counts what the embedded store has run since [counting], in all connections. PRAGMA is not counted,
// because a process uses it now and then to see whether another process has written.
var statements atomic.Int64

// counting returns the name of a driver that counts another driver's statements.
func counting(t *testing.T, of string) string {
	t.Helper()
	db, err := sql.Open(of, "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const name = "counting"
	sql.Register(name, countingDriver{db.Driver()})
	return name
}

type countingDriver struct{ driver.Driver }

func (d countingDriver) Open(name string) (driver.Conn, error) {
	c, err := d.Driver.Open(name)
	if err != nil {
		return nil, err
	}
	return countingConn{c.(conn)}, nil
}

// conn has the methods of a connection that database/sql and the store use.
type conn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

type countingConn struct{ conn }

func (c countingConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	st, err := c.conn.PrepareContext(ctx, text)
	if err != nil || strings.HasPrefix(text, "PRAGMA") {
		return st, err
	}
	return countingStmt{st.(statement)}, nil
}

// statement has the methods of a prepared statement that database/sql and the store use.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type countingStmt struct{ statement }

func (s countingStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	statements.Add(1)
	return s.statement.ExecContext(ctx, args)
}

func (s countingStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	statements.Add(1)
	return s.statement.QueryContext(ctx, args)
}
