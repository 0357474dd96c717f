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

	"github.com/countersign-run/countersign/shared/store"
)

// The names of the files beside the store's own, after its name.
const (
	newestSuffix  = ".newest"
	putBackSuffix = ".put-back"
)

// newest is the file beside the store that holds the clock of the newest commit. A store whose clock is behind it was
// replaced by an older copy. It is written after a commit and before the caller goes on, so that a process that is
// killed in between leaves it behind the store, which raises no alarm. It is synced before each effect ([Store.Pin])
// and not with each commit: a power failure may lose the writes since the last effect, which nothing has seen.
type newest struct {
	file *os.File // nil: in memory

	pinning sync.Mutex
	pinned  int64 // the clock up to which the file is synced
}

// syncFile syncs a file. A test counts.
var syncFile = (*os.File).Sync

// openNewest opens the file beside the store. Where the store is older, it leaves a mark that stays until [Store.Kept],
// whatever is committed meanwhile.
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
	mark, err := os.OpenFile(s.file+putBackSuffix, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return closing(mark.Sync(), mark)
}

// Pin implements [store.Pinner]: it syncs the file beside the store, unless that was done since the newest commit.
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

// PutBack reports whether the store was found to be an older copy of itself, and [Store.Kept] was not called since.
func (s *Store) PutBack() (bool, error) {
	if s.newest.file == nil {
		return false, nil
	}
	_, err := os.Stat(s.file + putBackSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Kept says that what had to be done about an older copy is in the store.
func (s *Store) Kept() error {
	if err := os.Remove(s.file + putBackSuffix); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// read returns the clock in the file, 0 where it has none yet.
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
