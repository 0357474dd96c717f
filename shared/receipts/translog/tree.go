package translog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Each tile has up to 256 hashes of one level of the tree.
const (
	tileHeight = 8
	tileWidth  = 1 << tileHeight
)

// grow appends leaves to the log of the tree, and returns the new tree. It writes the bundles of leaves, and then the
// tiles. It changes no object, so a repeated call with the same leaves does no harm. What it reads of the old tree is
// checked against the tree's root.
func grow(ctx context.Context, o Objects, old tlog.Tree, leaves []Leaf) (tlog.Tree, error) {
	first := old.N / tileWidth * tileWidth
	all, err := readLeaves(ctx, o, first, old.N)
	if err != nil {
		return old, err
	}
	h := hashes{old: tlog.TileHashReader(old, &tileReader{ctx: ctx, objects: o, read: map[string][]byte{}}),
		begin: tlog.StoredHashCount(old.N)}
	if old.N == 0 {
		h.old = tlog.HashReaderFunc(func([]int64) ([]tlog.Hash, error) { return nil, nil })
	}
	for _, l := range leaves {
		add, err := tlog.StoredHashes(first+int64(len(all)), l.encode(), &h)
		if err != nil {
			return old, err
		}
		h.added, all = append(h.added, add...), append(all, l)
	}
	size := first + int64(len(all))
	root, err := tlog.TreeHash(size, &h)
	if err != nil {
		return old, err
	}
	for at := first; at < size; at += tileWidth {
		part := all[at-first : min(at-first+tileWidth, int64(len(all)))]
		if err := o.Create(ctx, tilePath(tileOf(at, len(part))), bundle(part)); err != nil {
			return old, err
		}
	}
	for _, t := range tlog.NewTiles(tileHeight, old.N, size) {
		data, err := tlog.ReadTileData(t, &h)
		if err != nil {
			return old, err
		}
		if err := o.Create(ctx, tilePath(t), data); err != nil {
			return old, err
		}
	}
	return tlog.Tree{N: size, Hash: root}, nil
}

// tileOf returns the bundle of leaves that begins with leaf at.
func tileOf(at int64, width int) tlog.Tile {
	return tlog.Tile{H: tileHeight, L: -1, N: at / tileWidth, W: width}
}

// bundle returns the leaves as a bundle: each with its length before it.
func bundle(leaves []Leaf) (b []byte) {
	for _, l := range leaves {
		b = append(binary.BigEndian.AppendUint16(b, leafSize), l.encode()...)
	}
	return b
}

// readLeaves reads the leaves from first, which begins a bundle, up to and without size.
func readLeaves(ctx context.Context, o Objects, first, size int64) (all []Leaf, err error) {
	for at := first; at < size; at += tileWidth {
		part, err := readBundle(ctx, o, tileOf(at, int(min(size-at, tileWidth))))
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
	}
	return all, nil
}

func readBundle(ctx context.Context, o Objects, t tlog.Tile) ([]Leaf, error) {
	data, err := readTile(ctx, o, t)
	if err != nil {
		return nil, err
	}
	leaves := make([]Leaf, t.W)
	for i := range leaves {
		one := data[i*(2+leafSize) : (i+1)*(2+leafSize)]
		if binary.BigEndian.Uint16(one) != leafSize {
			return nil, fmt.Errorf("translog: %s has a leaf of another length", tilePath(t))
		}
		if leaves[i], err = decodeLeaf(one[2:]); err != nil {
			return nil, err
		}
	}
	return leaves, nil
}

// hashes are the stored hashes of a tree that grows: those of the old tree in its tiles, and the added ones.
type hashes struct {
	old   tlog.HashReader
	begin int64 // index of the first added hash
	added []tlog.Hash
}

// ReadHashes implements [tlog.HashReader].
func (h *hashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	all := make([]tlog.Hash, len(indexes))
	var old []int64
	var places []int
	for i, x := range indexes {
		switch {
		case x < h.begin:
			old, places = append(old, x), append(places, i)
		case x-h.begin < int64(len(h.added)):
			all[i] = h.added[x-h.begin]
		default:
			return nil, errors.New("translog: a hash beyond the tree")
		}
	}
	if len(old) == 0 {
		return all, nil
	}
	read, err := h.old.ReadHashes(old)
	if err != nil {
		return nil, err
	}
	for i, at := range places {
		all[at] = read[i]
	}
	return all, nil
}

// tileReader reads tiles, each once.
type tileReader struct {
	ctx     context.Context
	objects Objects
	read    map[string][]byte
}

func (*tileReader) Height() int                     { return tileHeight }
func (*tileReader) SaveTiles([]tlog.Tile, [][]byte) {}

// ReadTiles implements [tlog.TileReader].
func (r *tileReader) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	all := make([][]byte, len(tiles))
	for i, t := range tiles {
		name := tilePath(t)
		if r.read[name] == nil {
			data, err := readTile(r.ctx, r.objects, t)
			if err != nil {
				return nil, err
			}
			r.read[name] = data
		}
		all[i] = r.read[name]
	}
	return all, nil
}
