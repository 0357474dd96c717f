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

// lookEvery is how often the file is looked at for commits of other processes, while somebody wants to know of them.
const lookEvery = 250 * time.Millisecond

const (
	// SQLite changes this number of a connection with each commit that is not the connection's own. It is the writer's,
	// so that this process's commits do not change it.
	dataVersionSQL = `PRAGMA data_version`
	// versionsSQL returns the versions of documents, 0 for one that does not exist.
	versionsSQL = `SELECT wanted.value, coalesce(d.version, 0)
FROM json_each(?) AS wanted LEFT JOIN documents AS d ON d.path = wanted.value`
)

// elsewhere notices commits of other processes on the store's file, by one look for all who want to know of them. The
// zero value looks at nothing.
type elsewhere struct {
	mu      sync.Mutex
	wanted  int  // how many want to know
	looking bool // a goroutine looks; it ends at its next look after the last of them has gone
	signals map[chan struct{}]bool
	closed  chan struct{} // closed by Close; nil where no other process can have the file
	ended   sync.WaitGroup
}

// Elsewhere returns a channel that receives after another process has committed to the store's file, within a quarter
// of a second and once for several commits, until ctx ends; it is never closed. It receives once at the beginning, so a
// caller that reads after the first signal and each later one misses nothing. Commits of this process send no signal. A
// store in memory, which has no other process, sends the first signal alone. The file is looked at (PRAGMA
// data_version, 4 times a second) once for all such channels and watchers of the process, and not at all while there
// are none.
func (s *Store) Elsewhere(ctx context.Context) <-chan struct{} {
	signal := make(chan struct{}, 1)
	signal <- struct{}{}
	leave := s.elsewhere.want(s, signal)
	context.AfterFunc(ctx, leave)
	return signal
}

// Watch implements [store.Store]. Commits of this process are delivered at once, those of others within a quarter of a
// second.
func (s *Store) Watch(ctx context.Context, path string) iter.Seq2[store.Doc, error] {
	return func(yield func(store.Doc, error) bool) {
		defer s.elsewhere.want(s, nil)()
		s.watchers.Watch(ctx, path, s.Get)(yield)
	}
}

// want has the file looked at until the returned function is called. The signal may be nil.
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

// unwanted reports whether no watcher is left; the polling caller then ends.
func (e *elsewhere) unwanted() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.looking = e.wanted > 0
	return !e.looking
}

// look looks at the file while somebody wants to know. Who came before the first look has read before it, so that look
// tells them like a change.
func (s *Store) look() {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	known := int64(-1)
	for {
		var seen int64
		err := s.dataVersion.QueryRow().Scan(&seen)
		if err == nil && seen != known && s.tell() == nil { // after an error the next look tells
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

// tell signals another process's commit to all channels, and to the watchers of the documents that have changed.
func (s *Store) tell() error {
	s.elsewhere.mu.Lock()
	for signal := range s.elsewhere.signals {
		select {
		case signal <- struct{}{}:
		default: // one is waiting
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

// close ends the looking.
func (e *elsewhere) close() {
	e.mu.Lock()
	if e.closed != nil && !isClosed(e.closed) {
		close(e.closed)
	}
	e.mu.Unlock()
	e.ended.Wait()
}
