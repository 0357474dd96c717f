// Package keyfile stores the keys of a server on one machine, each in a file that is created on first use and readable
// by its owner only.
package keyfile

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Read returns the content of the file with the name in the directory, and creates it with write if it does not exist.
// If several processes do so at once, one creates the file and all return its content: it is written to a temporary
// file and then linked, so a half-written key is never seen and an existing one never replaced.
func Read(dir, name string, write func(io.Writer) error) ([]byte, error) {
	path := filepath.Join(dir, name)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := create(dir, name, write); err != nil {
			return nil, fmt.Errorf("make %s: %w", path, err)
		}
		content, err = os.ReadFile(path)
	}
	return content, err
}

func create(dir, name string, write func(io.Writer) error) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, name+".*") // created with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if err := errors.Join(write(tmp), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), filepath.Join(dir, name)); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// SeedSize is the length of a seed, in bytes.
const SeedSize = 32

// Seed returns the random seed in the file, which has it in base64, and creates one on first use. The error contains
// nothing of a damaged file.
func Seed(dir, name string) ([]byte, error) {
	text, err := Read(dir, name, func(w io.Writer) error {
		seed := make([]byte, SeedSize)
		if _, err := rand.Read(seed); err != nil {
			return err
		}
		_, err := io.WriteString(w, base64.StdEncoding.EncodeToString(seed)+"\n")
		return err
	})
	if err != nil {
		return nil, err
	}
	seed, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(seed) != SeedSize {
		return nil, fmt.Errorf("%s: the key is not %d bytes in base64", filepath.Join(dir, name), SeedSize)
	}
	return seed, nil
}
