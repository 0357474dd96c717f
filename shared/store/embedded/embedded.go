// Package embedded is a store in one SQLite file: no server, no account, and as strict as Firestore. An acknowledged
// commit is on the disk (write-ahead log, synchronous FULL), so neither kill -9 nor a power failure undoes it. Several
// processes may use one file on a local disk; their commits take turns. Commits of one process that arrive together are
// written in one transaction and share its sync ([Store.Commit]).
//
// The store's clock is the caller's, forced forward: a version is later than every version before it in the file, and
// later than every ReadTime that this process has returned.
package embedded

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/watch"
)

const (
	fileName    = "countersign.db"
	busyTimeout = 5 * time.Second // how long a process waits for another's commit before ErrUnavailable
	busySlice   = 25 * time.Millisecond
	openTimeout = 30 * time.Second
	openBusy    = 25 * time.Second // how long Open waits for a process that creates or rewrites the file
	readers     = 4                // connections that read while one writes
)

// Driver is the name of the database/sql driver that opens stores. A test can replace it with a driver that counts.
var Driver = "sqlite"

// Store implements [store.Store] in SQLite.
type Store struct {
	now     func() time.Time
	file    string       // empty: in memory
	seen    atomic.Int64 // the latest ReadTime returned, in microseconds since 1970
	writer  *sql.DB      // one connection, so that commits of this process queue in Go and not in SQLite's busy loop
	reader  *sql.DB      // the writer itself if the database is in memory
	get     *sql.Stmt
	queries map[string]*sql.Stmt // by index name and direction
	group   group                // the commits that wait for the writer
	own     writer               // the leader's prepared connection
	using   sync.Mutex           // held while own is in use
	closed  sync.Once

	checkpoints checkpoints
	newest      newest

	watchers    watch.Hub
	elsewhere   elsewhere
	dataVersion *sql.Stmt
	versions    *sql.Stmt
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Pinner = (*Store)(nil)
)

// Open opens the store in the directory, and creates the directory if it does not exist. now is the clock; it need not
// advance.
func Open(dir string, now func() time.Time) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("embedded store: %w", err)
	}
	file, err := filepath.Abs(filepath.Join(dir, fileName))
	if err != nil {
		return nil, fmt.Errorf("embedded store: %w", err)
	}
	// SQLite would make the file readable by every user; its side files inherit the mode.
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("embedded store: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("embedded store: %w", err)
	}
	writer, err := connect(dsn(file, busySlice, "journal_mode(WAL)", "synchronous(FULL)", longest()), 1)
	if err != nil {
		return nil, err
	}
	reader, err := connect(dsn(file, busyTimeout, "query_only(1)"), readers)
	if err != nil {
		return nil, closing(err, writer)
	}
	s, err := start(&Store{now: now, file: file, writer: writer, reader: reader,
		elsewhere: elsewhere{closed: make(chan struct{}), signals: map[chan struct{}]bool{}}})
	if err != nil {
		return nil, err
	}
	if err := s.openNewest(); err != nil {
		return nil, closing(fmt.Errorf("embedded store: %w", err), s)
	}
	return s, nil
}

// File returns the absolute path of the store's file, or "" for a store in memory.
func (s *Store) File() string { return s.file }

// OpenMemory opens a store in memory that is lost when it is closed: for tests, and for requests that store nothing.
func OpenMemory(now func() time.Time) (*Store, error) {
	db, err := connect("file::memory:?_txlock=immediate", 1)
	if err != nil {
		return nil, err
	}
	return start(&Store{now: now, writer: db, reader: db})
}

func dsn(file string, busy time.Duration, pragmas ...string) string {
	q := url.Values{"_txlock": {"immediate"},
		"_pragma": append(pragmas, fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()))}
	path := "/" + strings.TrimPrefix(filepath.ToSlash(file), "/")
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: q.Encode()}).String()
}

func connect(dsn string, conns int) (*sql.DB, error) {
	db, err := sql.Open(Driver, dsn)
	if err != nil {
		return nil, fmt.Errorf("embedded store: %w", err)
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

func start(s *Store) (*Store, error) {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	err := withRetries(ctx, openBusy, func() error { return migrate(ctx, s.writer) })
	if err == nil {
		err = s.prepare(ctx)
	}
	if err != nil {
		return nil, closing(fmt.Errorf("embedded store: open: %w", err), s)
	}
	return s, nil
}

func (s *Store) prepare(ctx context.Context) (err error) {
	stmt := func(db *sql.DB, text string) *sql.Stmt {
		if err != nil {
			return nil
		}
		var st *sql.Stmt
		st, err = db.PrepareContext(ctx, text)
		return st
	}
	s.dataVersion = stmt(s.writer, dataVersionSQL)
	s.versions = stmt(s.reader, versionsSQL)
	s.get = stmt(s.reader, getSQL)
	s.queries = make(map[string]*sql.Stmt, len(store.Indexes))
	for _, x := range store.Indexes {
		s.queries[statementName(x)] = stmt(s.reader, querySQL(x))
	}
	return err
}

// Close closes the store. Open watches end with an error. A second Close does nothing.
func (s *Store) Close() (err error) {
	s.closed.Do(func() {
		s.elsewhere.close()
		defer s.watchers.All()
		s.checkpoints.ended.Wait()
		err = closing(s.unprepare(), s.writer, &s.newest)
		if s.reader != s.writer {
			err = closing(err, s.reader)
		}
	})
	return err
}

// unprepare closes the writer's own statements. Otherwise they would keep its connection open.
func (s *Store) unprepare() error {
	conn, err := s.writer.Conn(context.Background())
	if err != nil {
		return err
	}
	return closing(conn.Raw(func(any) error { return s.own.close() }), conn)
}
