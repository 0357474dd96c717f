package attachment

import (
	"bytes"
	"encoding/binary"
)

// The limits of EXIF data. A picture of a camera has up to five directories.
const (
	maxDirectories = 32
	maxEntries     = 1000 // of one directory
	entrySize      = 12
	gpsPointer     = 0x8825 // the tag of the entry that leads to the GPS directory
)

// The beginnings of EXIF data.
const (
	littleEndian = "II*\x00"
	bigEndian    = "MM\x00*"
)

// sizes are the bytes of one value, by the type of an entry.
var sizes = [...]int{1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4}

// tiff is EXIF data: directories of entries, in the TIFF format.
type tiff struct {
	data  []byte
	order binary.ByteOrder
}

// tiffWithout returns EXIF data of the same length whose GPS directories have no entries, and whether there were any.
// The bytes of the entries and of their values are zero.
func tiffWithout(data []byte) (_ []byte, found bool) {
	t := tiff{data: bytes.Clone(data)}
	switch {
	case len(data) < 8:
		return data, false
	case hasPrefix(data, littleEndian):
		t.order = binary.LittleEndian
	case hasPrefix(data, bigEndian):
		t.order = binary.BigEndian
	default:
		return data, false
	}
	next := t.at(4)
	for n := 0; n < maxDirectories && next != 0; n++ {
		entries, after, ok := t.directory(next)
		if !ok {
			break
		}
		for e := 0; e < len(entries); e += entrySize {
			entry := entries[e : e+entrySize]
			if t.order.Uint16(entry) == gpsPointer {
				found = t.erase(int64(t.order.Uint32(entry[8:]))) || found
			}
		}
		next = after
	}
	return t.data, found
}

// at returns the offset that is stored at a position, or 0 if the data ends before it.
func (t tiff) at(position int64) int64 {
	if position < 0 || position+4 > int64(len(t.data)) {
		return 0
	}
	return int64(t.order.Uint32(t.data[position:]))
}

// directory returns the entries of the directory at the offset, and the offset of the next directory.
func (t tiff) directory(offset int64) (entries []byte, next int64, ok bool) {
	if offset < 8 || offset+2 > int64(len(t.data)) {
		return nil, 0, false
	}
	count := int64(t.order.Uint16(t.data[offset:]))
	end := offset + 2 + count*entrySize
	if count > maxEntries || end > int64(len(t.data)) {
		return nil, 0, false
	}
	return t.data[offset+2 : end], t.at(end), true
}

// erase empties the directory at the offset: each entry, its value, and the number of entries. A directory that is cut
// loses all bytes that it has.
func (t tiff) erase(offset int64) bool {
	entries, _, ok := t.directory(offset)
	if !ok {
		if offset < 8 || offset >= int64(len(t.data)) {
			return false
		}
		clear(t.data[offset:])
		return true
	}
	if len(entries) == 0 {
		return false
	}
	for e := 0; e < len(entries); e += entrySize {
		entry := entries[e : e+entrySize]
		kind, count := int(t.order.Uint16(entry[2:])), int64(t.order.Uint32(entry[4:]))
		if kind < len(sizes) {
			if length, begin := count*int64(sizes[kind]), int64(t.order.Uint32(entry[8:])); length > 4 &&
				begin >= 8 && begin < int64(len(t.data)) {
				clear(t.data[begin:min(begin+length, int64(len(t.data)))])
			}
		}
	}
	clear(entries)
	t.order.PutUint16(t.data[offset:], 0)
	return true
}
