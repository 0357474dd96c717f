package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// The suffixes of the files next to the store's own file.
const (
	newestSuffix  = ".newest"
	putBackSuffix = ".put-back"
)

// newest is the file next to the store that holds the clock of the newest commit. If the store's clock is behind it,
// the store was replaced with an older copy. The file is written after each commit, before Commit returns. If a process
// is killed in between, the file is behind the store, which raises no alarm. It is synced before each effect
// ([Store.Pin]), not with each commit: a power failure can lose only commits since the last effect, and nothing outside
// has seen those.
type newest struct {
	file *os.File // nil if the store is in memory

	pinning sync.Mutex
	pinned  int64 // the file is synced up to this clock
}

// syncFile syncs a file. It is a variable so that a test can count the calls.
var syncFile = (*os.File).Sync

// openNewest opens the file next to the store. If the store is older than the file says, it creates a mark that stays
// until [Store.Kept], even if the store is written in the meantime.
func (s *Store) openNewest() error {
	f, err := os.OpenFile(s.file+newestSuffix, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	s.newest.file = f
	if err := syncFolder(filepath.Dir(s.file)); err != nil {
		return err
	}
	unlock, err := lockFile(f)
	if err != nil {
		return err
	}
	defer unlock()
	var clock int64
	if err := s.writer.QueryRowContext(context.Background(), "SELECT last FROM clock").Scan(&clock); err != nil {
		return err
	}
	known, err := s.newest.read()
	if err != nil || known <= clock {
		return err
	}
	return s.markPutBack(clock)
}

// markPutBack creates the mark of an older copy with the copy's clock. It leaves an earlier mark as it is, because the
// copy may have been written since.
func (s *Store) markPutBack(clock int64) error {
	mark, err := os.OpenFile(s.file+putBackSuffix, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = mark.Write(binary.BigEndian.AppendUint64(nil, uint64(clock)))
	return closing(errors.Join(err, mark.Sync()), mark)
}

// Pin implements [store.Pinner]. It syncs the file next to the store, unless it was synced after the newest commit.
func (s *Store) Pin(context.Context) error {
	n := &s.newest
	if n.file == nil {
		return nil
	}
	n.pinning.Lock()
	defer n.pinning.Unlock()
	clock, err := n.read()
	if err == nil && clock > n.pinned {
		err = syncFile(n.file)
	}
	if err != nil {
		return fmt.Errorf("%w: the file %s: %w", store.ErrUnavailable, newestSuffix, err)
	}
	n.pinned = clock
	return nil
}

// PutBack reports whether the store was found to be an older copy of itself and [Store.Kept] was not called since. The
// time is that of the copy's newest commit, or zero if an earlier release found the copy.
func (s *Store) PutBack() (since time.Time, found bool, err error) {
	if s.newest.file == nil {
		return time.Time{}, false, nil
	}
	mark, err := os.ReadFile(s.file + putBackSuffix)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return time.Time{}, false, nil
	case err != nil:
		return time.Time{}, false, err
	case len(mark) == 8:
		since = time.UnixMicro(int64(binary.BigEndian.Uint64(mark))).UTC()
	}
	return since, true, nil
}

// Kept removes the mark of an older copy. Call it after the consequences of the older copy are committed.
func (s *Store) Kept() error {
	if err := os.Remove(s.file + putBackSuffix); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// read returns the clock in the file, or 0 if the file is still empty.
func (n *newest) read() (int64, error) {
	var b [8]byte
	_, err := n.file.ReadAt(b[:], 0)
	if errors.Is(err, io.EOF) {
		return 0, nil
	}
	return int64(binary.BigEndian.Uint64(b[:])), err
}

// advance writes the clock, unless another process has written a later one.
func (n *newest) advance(clock int64) error {
	if n.file == nil {
		return nil
	}
	unlock, err := lockFile(n.file)
	if err != nil {
		return err
	}
	defer unlock()
	known, err := n.read()
	if err != nil || known >= clock {
		return err
	}
	_, err = n.file.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(clock)), 0)
	return err
}

// Close closes the file.
func (n *newest) Close() error {
	if n.file == nil {
		return nil
	}
	return n.file.Close()
}
