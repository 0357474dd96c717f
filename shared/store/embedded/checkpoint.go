package embedded

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync"
)

// By default, SQLite copies its write-ahead log into the database file during the commit that makes the log longer than
// 1,000 pages, and all other commits wait. Here, a reading connection copies the log while commits continue. Only the
// pages that were added in the meantime are copied between two commits, after which the log starts from its beginning
// again.
const (
	lookAtLogEvery = 16     // transactions
	longLog        = 1000   // pages, of 4 KiB
	longestLog     = 20_000 // pages, beyond which SQLite copies them during a commit

	logSQL        = `PRAGMA wal_checkpoint(NOOP)`
	checkpointSQL = `PRAGMA wal_checkpoint(PASSIVE)`
)

// checkpoints copies the write-ahead log into the file.
type checkpoints struct {
	since   int // transactions since the log was last checked; only the leader uses it
	mu      sync.Mutex
	copying bool
	ended   sync.WaitGroup
}

func longest() string { return fmt.Sprintf("wal_autocheckpoint(%d)", longestLog) }

// shorten checks the log between two commits, once every lookAtLogEvery transactions. A failure does not fail a commit:
// the log stays longer, and the next check tries again.
func (s *Store) shorten() {
	if s.checkpoints.since++; s.reader == s.writer || s.checkpoints.since < lookAtLogEvery {
		return
	}
	s.checkpoints.since = 0
	var pages, copied int64
	if s.own.query(logSQL, func(row []driver.Value) {
		pages, copied = row[1].(int64), row[2].(int64)
	}) != nil || pages < longLog {
		return
	}
	if copied == 0 || pages-copied > longLog {
		s.checkpoints.start(func() { _, _ = s.reader.ExecContext(context.Background(), checkpointSQL) })
		return
	}
	_ = s.own.query(checkpointSQL, func([]driver.Value) {})
}

// start starts a copy, unless one is in progress.
func (c *checkpoints) start(copy func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.copying {
		return
	}
	c.copying = true
	c.ended.Go(func() {
		copy()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.copying = false
	})
}
