package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
)

// files holds the contents of an archive, keyed by slash-separated paths.
type files map[string][]byte

const (
	date1980 = 1<<5 | 1 // the first date that a zip can represent
	maxFiles = 2000
	maxSize  = 32 << 20
)

// pack returns an archive. Its entries are sorted, have one date and one mode, and are not compressed, because
// compressed bytes differ between releases of Go. The mode is writable, because the cloud's build writes go.mod.
func pack(content files) ([]byte, error) {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, name := range slices.Sorted(maps.Keys(content)) {
		body := content[name]
		//lint:ignore SA1019 an entry that is made raw has the date of this field, and no other
		h := &zip.FileHeader{Name: name, Method: zip.Store, ModifiedDate: date1980, CRC32: crc32.ChecksumIEEE(body),
			CompressedSize64: uint64(len(body)), UncompressedSize64: uint64(len(body))}
		h.SetMode(0o644)
		f, err := w.CreateRaw(h)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be packed: %w", name, err)
		}
		if _, err := f.Write(body); err != nil {
			return nil, fmt.Errorf("%s cannot be packed: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// unpack decodes an archive.
func unpack(archive []byte) (files, error) {
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, fmt.Errorf("not a zip file: %w", err)
	}
	if len(r.File) > maxFiles || len(archive) > maxSize {
		return nil, fmt.Errorf("%d files in %d bytes; the limits are %d files and %d bytes", len(r.File),
			len(archive), maxFiles, maxSize)
	}
	content := files{}
	for _, f := range r.File {
		if f.Mode() != 0o644 {
			return nil, fmt.Errorf("%s has the mode %v; the build needs -rw-r--r--", f.Name, f.Mode())
		}
		body, err := read(f)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be read: %w", f.Name, err)
		}
		content[f.Name] = body
	}
	return content, nil
}

func read(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, maxSize))
}
