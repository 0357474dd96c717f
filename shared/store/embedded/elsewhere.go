package embedded

import (
	"context"
	"database/sql"
	"encoding/json"
	"iter"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// lookEvery is the interval at which the file is checked for commits of other processes, while anything listens for
// them.
const lookEvery = 250 * time.Millisecond

const (
	// SQLite changes this number of a connection after each commit by another connection. It is read on the writer's
	// connection, so commits of this process do not change it.
	dataVersionSQL = `PRAGMA data_version`
	// versionsSQL returns the documents' versions, and 0 for a document that does not exist.
	versionsSQL = `SELECT wanted.value, coalesce(d.version, 0)
FROM json_each(?) AS wanted LEFT JOIN documents AS d ON d.path = wanted.value`
)

// elsewhere detects commits of other processes to the store's file. One check serves all listeners. The zero value
// checks nothing.
type elsewhere struct {
	mu      sync.Mutex
	wanted  int  // number of listeners
	looking bool // a goroutine checks the file; it ends at its first check without a listener
	signals map[chan struct{}]bool
	closed  chan struct{} // closed by Close; nil if no other process can use the file
	ended   sync.WaitGroup
}

// Elsewhere returns a channel that receives a signal after another process has committed to the store's file. The
// signal comes within a quarter of a second, and once for several commits. The first signal comes at the beginning, so
// a reader that reads after every signal misses nothing. Signals end with ctx; the channel is never closed. Commits of
// this process send no signal. A store in memory, which no other process can use, sends only the first signal.
//
// One check of the file (PRAGMA data_version, 4 times a second) serves all such channels and watchers of the process.
// Without any, the file is not checked.
func (s *Store) Elsewhere(ctx context.Context) <-chan struct{} {
	signal := make(chan struct{}, 1)
	signal <- struct{}{}
	leave := s.elsewhere.want(s, signal)
	context.AfterFunc(ctx, leave)
	return signal
}

// Watch implements [store.Store]. Commits of this process are delivered at once, commits of other processes within a
// quarter of a second.
func (s *Store) Watch(ctx context.Context, path string) iter.Seq2[store.Doc, error] {
	return func(yield func(store.Doc, error) bool) {
		defer s.elsewhere.want(s, nil)()
		s.watchers.Watch(ctx, path, s.Get)(yield)
	}
}

// want adds a listener, so the file is checked until the returned function is called. signal may be nil.
func (e *elsewhere) want(s *Store, signal chan struct{}) (leave func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed == nil || isClosed(e.closed) {
		return func() {}
	}
	e.wanted++
	if signal != nil {
		e.signals[signal] = true
	}
	if !e.looking {
		e.looking = true
		e.ended.Go(func() { s.look() })
	}
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.wanted--
		delete(e.signals, signal)
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// unwanted reports whether no listener is left. The checking goroutine calls it and then ends.
func (e *elsewhere) unwanted() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.looking = e.wanted > 0
	return !e.looking
}

// look checks the file while there are listeners. The first check always signals, because a listener may have read the
// store before that check.
func (s *Store) look() {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	known := int64(-1)
	for {
		var seen int64
		err := s.dataVersion.QueryRow().Scan(&seen)
		if err == nil && seen != known && s.tell() == nil { // after an error, the next check signals
			known = seen
		}
		select {
		case <-s.elsewhere.closed:
			return
		case <-ticker.C:
			if s.elsewhere.unwanted() {
				return
			}
		}
	}
}

// tell signals a commit of another process to all channels, and to the watchers of the documents that have changed.
func (s *Store) tell() error {
	s.elsewhere.mu.Lock()
	for signal := range s.elsewhere.signals {
		select {
		case signal <- struct{}{}:
		default: // one signal is waiting
		}
	}
	s.elsewhere.mu.Unlock()
	paths := s.watchers.Paths()
	if len(paths) == 0 {
		return nil
	}
	wanted, err := json.Marshal(paths)
	if err != nil {
		return err
	}
	return s.found(s.versions.Query(string(wanted)))
}

func (s *Store) found(rows *sql.Rows, err error) (failed error) {
	if err != nil {
		return err
	}
	defer func() { failed = closing(failed, rows) }()
	for rows.Next() {
		var path string
		var version int64
		if err := rows.Scan(&path, &version); err != nil {
			return err
		}
		at := time.Time{}
		if version != 0 {
			at = time.UnixMicro(version).UTC()
		}
		s.watchers.Found(path, at)
	}
	return rows.Err()
}

// close ends the checks.
func (e *elsewhere) close() {
	e.mu.Lock()
	if e.closed != nil && !isClosed(e.closed) {
		close(e.closed)
	}
	e.mu.Unlock()
	e.ended.Wait()
}
