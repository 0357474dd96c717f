package attachment

import (
	"bytes"
	"encoding/binary"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// place is a part of a file that names a place, with the function that overwrites it.
type place struct {
	from, to int
	erase    func([]byte)
}

// movieWithout overwrites the places in the boxes of a movie that describe it. The bytes of the pictures and the sound
// stay. The tracks in which some cameras write a place for each moment stay too.
func movieWithout(data []byte) ([]byte, bool) {
	var found []place
	for at := 0; at < len(data); {
		size, ok := boxSize(data[at:])
		if !ok {
			break
		}
		switch box := data[at : at+size]; string(box[4:8]) {
		case "moov", "udta", "meta", "uuid":
			for _, p := range placesIn(box) {
				found = append(found, place{at + p.from, at + p.to, p.erase})
			}
		}
		at += size
	}
	if len(found) == 0 {
		return data, false
	}
	out := bytes.Clone(data)
	for _, p := range found {
		p.erase(out[p.from:p.to])
	}
	return out, true
}

// boxSize returns the size of the box at the beginning of the data, with its header.
func boxSize(data []byte) (size int, ok bool) {
	if len(data) < 8 {
		return 0, false
	}
	n := uint64(binary.BigEndian.Uint32(data))
	switch {
	case n == 0: // to the end
		n = uint64(len(data))
	case n == 1 && len(data) >= 16:
		n = binary.BigEndian.Uint64(data[8:])
	}
	return int(n), n >= 8 && n <= uint64(len(data))
}

// coordinates matches a place as text (ISO 6709), as phones write it into movies.
var coordinates = lazyregexp.New(`[+-]\d{2,6}(\.\d+)?[+-]\d{3,7}(\.\d+)?([+-]\d+(\.\d+)?)?(CRS\w+)?/`)

// placesIn returns the places in a box that were not overwritten before: as text, in boxes of 3GPP, and in XMP data.
func placesIn(box []byte) (all []place) {
	for _, m := range coordinates.FindAllStringIndex(string(box), -1) {
		if bytes.ContainsAny(box[m[0]:m[1]], "123456789") {
			all = append(all, place{m[0], m[1], toZeros})
		}
	}
	const loci, behind = "loci", 6 // version, flags and language
	for at := 4; at < len(box); {
		next := bytes.Index(box[at:], []byte(loci))
		if next < 0 {
			break
		}
		at += next + len(loci)
		size, ok := boxSize(box[at-8:])
		if from, to := at+behind, at-8+size; ok && from < to && len(bytes.Trim(box[from:to], "\x00")) > 0 {
			all = append(all, place{from, to, func(b []byte) { clear(b) }})
		}
	}
	for _, p := range xmpIn(box) {
		if namesPlace(box[p.from:p.to]) {
			all = append(all, p)
		}
	}
	return all
}

// toZeros overwrites the digits of a text.
func toZeros(text []byte) {
	for i, b := range text {
		if '0' <= b && b <= '9' {
			text[i] = '0'
		}
	}
}
