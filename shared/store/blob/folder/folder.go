// Package folder stores objects as files in a folder. Several processes may use the folder at once.
package folder

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/blob"
)

// Folder is a [blob.Store]. The folder is created with the first object.
type Folder struct{ path string }

// New returns the store in the folder.
func New(path string) *Folder { return &Folder{path} }

// Create implements [blob.Store]. The bytes are written to another file and then linked, so no reader and no later
// process finds half an object.
func (f *Folder) Create(ctx context.Context, name string, data []byte) error {
	if err := errors.Join(blob.Check(name, data), interrupted(ctx, "create")); err != nil {
		return err
	}
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return failed("create", err)
	}
	root, err := os.OpenRoot(f.path)
	if err != nil {
		return failed("create", err)
	}
	defer root.Close()
	tmp := "." + rand.Text()
	err = write(root, tmp, data)
	if err == nil {
		if err = root.Link(tmp, file(name)); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	return failed("create", errors.Join(err, root.Remove(tmp), sync(root)))
}

func write(root *os.Root, name string, data []byte) error {
	tmp, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	return errors.Join(err, tmp.Sync(), tmp.Close())
}

// sync makes the folder's entries durable, where the system can.
func sync(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	_ = dir.Sync() // Windows cannot, and keeps its entries in a journal
	return dir.Close()
}

// Read implements [blob.Store].
func (f *Folder) Read(ctx context.Context, name string) (data []byte, err error) {
	if err := errors.Join(blob.Check(name, nil), interrupted(ctx, "read")); err != nil {
		return nil, err
	}
	err = f.at(func(root *os.Root) error {
		in, err := root.Open(file(name))
		if err != nil {
			return err
		}
		defer in.Close()
		data, err = io.ReadAll(io.LimitReader(in, blob.MaxBytes+1))
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, blob.ErrGone
	}
	if err == nil {
		err = blob.Check(name, data)
	}
	return data, failed("read", err)
}

// Delete implements [blob.Store].
func (f *Folder) Delete(ctx context.Context, name string) error {
	if err := errors.Join(blob.Check(name, nil), interrupted(ctx, "delete")); err != nil {
		return err
	}
	err := f.at(func(root *os.Root) error { return root.Remove(file(name)) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return failed("delete", err)
}

// at calls do with the folder, which do cannot leave.
func (f *Folder) at(do func(*os.Root) error) error {
	root, err := os.OpenRoot(f.path)
	if err != nil {
		return err
	}
	return errors.Join(do(root), root.Close())
}

// file returns the name of an object's file. The files are in one folder, so that a deletion leaves no empty ones.
func file(name string) string { return strings.ReplaceAll(name, "/", ".") }

func interrupted(ctx context.Context, method string) error {
	if cause := ctx.Err(); cause != nil {
		return store.Interrupted("folder: "+method, cause)
	}
	return nil
}

func failed(method string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("folder: %s: %w", method, err)
}
