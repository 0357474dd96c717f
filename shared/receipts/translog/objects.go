package translog

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/blob"
)

// ErrGone means that no object has the name.
var ErrGone = blob.ErrGone

// Objects are the files of a log.
type Objects interface {
	// Create stores an object that never changes. If the name exists, the object must have the same bytes.
	Create(ctx context.Context, name string, data []byte) error
	// Read returns an object's bytes, or [ErrGone].
	Read(ctx context.Context, name string) ([]byte, error)
	// Replace stores the object that may change, or returns [store.ErrConflict] if another process has replaced the
	// bytes that were read. Nil stands for no object.
	Replace(ctx context.Context, name string, was, data []byte) error
	// List returns the sorted names of the objects in a folder.
	List(ctx context.Context, folder string) ([]string, error)
}

// The names of objects. Hourly has the first checkpoint of each hour.
const (
	checkpointName = "checkpoint"
	hourly         = "checkpoints"
)

// maxObject is the maximum size of an object. A bundle of 256 leaves is the largest.
const maxObject = 256 * (2 + leafSize)

// tilePath returns the path of a tile (https://c2sp.org/tlog-tiles). Level -1 is that of the leaves.
func tilePath(t tlog.Tile) string {
	if rest, ok := strings.CutPrefix(t.Path(), "tile/8/data/"); ok {
		return "tile/entries/" + rest
	}
	return "tile/" + strings.TrimPrefix(t.Path(), "tile/8/")
}

// readTile returns the bytes of a tile. Its partial form may have been deleted after the tile became full.
func readTile(ctx context.Context, o Objects, t tlog.Tile) ([]byte, error) {
	data, err := o.Read(ctx, tilePath(t))
	if full := t; errors.Is(err, ErrGone) && t.W < tileWidth {
		full.W = tileWidth
		data, err = o.Read(ctx, tilePath(full))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tilePath(t), err)
	}
	size := t.W * tlog.HashSize
	if t.L < 0 {
		size = t.W * (2 + leafSize)
	}
	if len(data) < size {
		return nil, fmt.Errorf("translog: %s is too short", tilePath(t))
	}
	return data[:size], nil
}

// Folder stores the objects as files in a folder.
type Folder struct {
	path string
	mu   sync.Mutex
}

// NewFolder returns the log in the folder, which is created with the first object.
func NewFolder(dir string) *Folder { return &Folder{path: dir} }

// Create implements [Objects].
func (f *Folder) Create(ctx context.Context, name string, data []byte) error {
	return f.at(ctx, true, func(root *os.Root) error {
		err := place(root, name, data, root.Link)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		if old, err := readIn(root, name); err != nil || !bytes.Equal(old, data) {
			return errors.Join(err, fmt.Errorf("translog: %s exists with other bytes", name))
		}
		return nil
	})
}

// Replace implements [Objects].
func (f *Folder) Replace(ctx context.Context, name string, was, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at(ctx, true, func(root *os.Root) error {
		old, err := readIn(root, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !bytes.Equal(old, was) {
			return store.ErrConflict
		}
		return place(root, name, data, root.Rename)
	})
}

// place writes the bytes to another file first, so that no reader finds half an object.
func place(root *os.Root, name string, data []byte, into func(tmp, name string) error) error {
	dir := path.Dir(name)
	_, err := root.Stat(dir)
	known := err == nil
	if err := root.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp := "." + rand.Text()
	out, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	err = errors.Join(err, out.Sync(), out.Close())
	if err == nil {
		err = into(tmp, name)
	}
	if gone := root.Remove(tmp); err == nil && !errors.Is(gone, fs.ErrNotExist) {
		err = gone
	}
	return errors.Join(err, settle(root, dir, known))
}

// settle makes the entries of a folder durable, where the system can, and those of the folders above it if the folder
// is new.
func settle(root *os.Root, dir string, known bool) error {
	for {
		d, err := root.Open(dir)
		if err != nil {
			return err
		}
		_ = d.Sync() // Windows cannot, and keeps its entries in a journal
		if err := d.Close(); err != nil || dir == "." || known {
			return err
		}
		dir = path.Dir(dir)
	}
}

// Read implements [Objects].
func (f *Folder) Read(ctx context.Context, name string) (data []byte, err error) {
	err = f.at(ctx, false, func(root *os.Root) error {
		data, err = readIn(root, name)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrGone
	}
	return data, err
}

func readIn(root *os.Root, name string) ([]byte, error) {
	in, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, MaxCheckpoint+1))
	if err == nil && len(data) > max(maxObject, MaxCheckpoint) {
		err = fmt.Errorf("translog: %s is too large", name)
	}
	return data, err
}

// List implements [Objects].
func (f *Folder) List(ctx context.Context, folder string) (names []string, err error) {
	err = f.at(ctx, false, func(root *os.Root) error {
		files, err := fs.ReadDir(root.FS(), folder)
		for _, one := range files {
			names = append(names, folder+"/"+one.Name())
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	slices.Sort(names)
	return names, err
}

// at calls do with the folder, which do cannot leave.
func (f *Folder) at(ctx context.Context, create bool, do func(*os.Root) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if create {
		if err := os.MkdirAll(f.path, 0o700); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(f.path)
	if err != nil {
		return err
	}
	return errors.Join(do(root), root.Close())
}
