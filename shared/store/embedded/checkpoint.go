package embedded

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync"
)

// SQLite would copy its write-ahead log into the file in the middle of the commit that makes the log longer than 1,000
// pages, while all others wait. Here a reading connection copies the log while commits go on. Only the pages added
// meanwhile are copied between two commits, and then the log starts from its beginning.
const (
	lookAtLogEvery = 16     // transactions
	longLog        = 1000   // pages, of 4 KiB
	longestLog     = 20_000 // pages, beyond which SQLite copies them in a commit

	logSQL        = `PRAGMA wal_checkpoint(NOOP)`
	checkpointSQL = `PRAGMA wal_checkpoint(PASSIVE)`
)

// checkpoints copies the write-ahead log into the file.
type checkpoints struct {
	since   int // transactions since the log was looked at; of who leads
	mu      sync.Mutex
	copying bool
	ended   sync.WaitGroup
}

func longest() string { return fmt.Sprintf("wal_autocheckpoint(%d)", longestLog) }

// shorten looks after the log once in a while, between two commits. It is no commit's failure if that cannot be done:
// the log is longer then, and the next look finds it.
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

// start begins to copy, unless that is under way.
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
