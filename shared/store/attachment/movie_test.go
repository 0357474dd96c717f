package attachment_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/store/attachment"
)

// box returns a box in the ISO base media format.
func box(kind, body string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)+8))) + kind + body
}

// movieHead returns the first box of a movie.
func movieHead(major string) string { return box("ftyp", major+"\x00\x00\x00\x00mp41") }

// TestPlaceOfMovie checks that movies lose the places that phones and cameras write into them, and no other byte.
func TestPlaceOfMovie(t *testing.T) {
	frames := box("mdat", "the frames, +37.4219-122.0840/ included")
	for name, c := range map[string]struct{ metadata, secret string }{
		"Android": {box("moov", box("udta", box("\xa9xyz", "\x00\x14\x15\xc7+37.4219-122.0840/"))), "37.4219"},
		"Apple": {box("moov", box("meta", "com.apple.quicktime.location.ISO6709\x00+37.3318-122.0312+012.345/")),
			"12.345"},
		"3GPP": {box("moov", box("loci", "\x00\x00\x00\x00\x15\xc7"+place+"\x00\x00\x12\x34\x56\x78")), place},
		"XMP":  {box("uuid", strings.Repeat("\x00", 16)+xmp), place},
	} {
		for _, movie := range []string{movieHead("isom") + c.metadata + frames, movieHead("qt  ") + frames + c.metadata,
			movieHead("M4A ") + c.metadata} {
			f, err := attachment.New("x", []byte(movie))
			if err != nil || !f.LocationRemoved || len(f.Data) != len(movie) {
				t.Errorf("%s: %v, removed: %v, %q", name, err, f.LocationRemoved, f.Data)
				continue
			}
			if strings.Contains(movie, "mdat") != bytes.Contains(f.Data, []byte(frames)) {
				t.Errorf("%s: the frames have changed: %q", name, f.Data)
			}
			if rest := bytes.Replace(f.Data, []byte(frames), nil, 1); bytes.Contains(rest, []byte(c.secret)) {
				t.Errorf("%s: the place is left: %q", name, rest)
			}
			again, err := attachment.New("x", f.Data)
			if err != nil || again.LocationRemoved || !bytes.Equal(again.Data, f.Data) {
				t.Errorf("%s: it changes again: %v", name, err)
			}
		}
	}
}

// TestMovieWithoutPlaceUnchanged has movies that name no place, break off, or lie about their sizes.
func TestMovieWithoutPlaceUnchanged(t *testing.T) {
	for name, rest := range map[string]string{
		"none":         box("moov", box("mvhd", "1+2-3/ and +00.0000-000.0000/")),
		"to the end":   "\x00\x00\x00\x00mdat+37.4219-122.0840/",
		"cut short":    "\x00\x00\x10\x00moov+37.4219-122.0840/",
		"a large size": "\x00\x00\x00\x01moov\xff\xff\xff\xff\xff\xff\xff\xff+37.4219-122.0840/",
		"a small size": "\x00\x00\x00\x04moov+37.4219-122.0840/",
		"loci alone":   box("moov", "loci"),
		"loci first":   "\x00\x00\x00\x0cmoovloci",
	} {
		movie := []byte(movieHead("isom") + rest)
		f, err := attachment.New("x", movie)
		if err != nil || f.LocationRemoved || !bytes.Equal(f.Data, movie) {
			t.Errorf("%s: %v, %q", name, err, f.Data)
		}
	}
}

// TestMovieOfCaller checks that the caller's bytes stay as they are.
func TestMovieOfCaller(t *testing.T) {
	movie := []byte(movieHead("isom") + box("moov", "+37.4219-122.0840/"))
	before := bytes.Clone(movie)
	if f, err := attachment.New("x", movie); err != nil || !f.LocationRemoved || !bytes.Equal(movie, before) {
		t.Errorf("%v: %q", err, movie)
	}
}
