package files

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Remove deletes a file or an empty folder.
func (d Dir) Remove(name string) error {
	return d.at("remove", name, func(in *os.Root, base string) error {
		if base == "." {
			return fs.ErrInvalid
		}
		if err := movable(in, base); err != nil {
			return err
		}
		return in.Remove(base)
	})
}

// Rename renames a file or folder, and creates missing folders. It replaces an existing file of the new name.
func (d Dir) Rename(from, to string) error {
	return d.at("rename", from, func(_ *os.Root, base string) error {
		if base == "." {
			return fs.ErrInvalid
		}
		return d.at("write", to, func(_ *os.Root, base string) error {
			if base == "." {
				return fs.ErrInvalid
			}
			return d.rename(from, to)
		})
	})
}

// rename renames the target of one name to the target of the other, within one open directory.
func (d Dir) rename(from, to string) error {
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return err
	}
	defer root.Close()
	was, errWas := resolve(root, from)
	will, errWill := resolve(root, to)
	if err := errors.Join(errWas, errWill); err != nil {
		return err
	}
	was, will = filepath.FromSlash(path.Clean(was)), filepath.FromSlash(path.Clean(will))
	if err := movable(root, was); err != nil {
		return err
	}
	if there, err := root.Lstat(will); err == nil && !there.Mode().IsRegular() {
		return fs.ErrExist
	}
	return root.Rename(was, will)
}

// movable refuses everything except plain files and folders.
func movable(in *os.Root, name string) error {
	there, err := in.Lstat(name)
	if err == nil && !there.Mode().IsRegular() && !there.IsDir() {
		err = fs.ErrPermission
	}
	return err
}
