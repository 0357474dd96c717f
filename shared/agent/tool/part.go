package tool

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// Part states which bytes of a text a result shows. A call must not replace a text (Def.Replaces) that was shown only
// in part, because the unseen rest would be lost.
type Part struct {
	Text
	Version string // version of the text; parts of different versions cannot be combined
	From    int
	To      int
	Size    int    // size of the whole text
	Lost    string // text that was removed and has no byte position, such as a secret; empty: none
	Rest    string // how to read the rest, as a sentence

	// Excerpt is set if the result shows chosen lines, and Lost describes the others. Another part of the text decides
	// instead, if there is one.
	Excerpt bool
}

// Text names a text that can be read and replaced.
type Text struct {
	In   string // location, such as a repository; empty: a container, whose texts can belong to any repository
	Name string // a path, or another name at that location
}

// Shows returns the parts of texts that the call's result shows.
func (t *Tool) Shows(args, result json.RawMessage) (parts []Part) {
	if !t.has.shows {
		return nil
	}
	defer func() {
		if recover() != nil {
			parts = nil
		}
	}()
	return t.shows(args, result)
}

// Replaces returns the texts that the call replaces completely.
func (t *Tool) Replaces(args json.RawMessage) (_ []Text, err error) {
	defer t.recoverPanic(&err, false)
	if !t.has.replaces {
		return nil, nil
	}
	return t.replaces(args)
}

// Piece returns the bytes of a text from an offset on, in whole characters, and where the piece begins. If limit is
// positive, the piece has at most limit bytes. It has at most most bytes when encoded as JSON. The error is for an
// offset beyond the text's end.
func Piece(text string, offset, limit, most int) (piece string, from int, err error) {
	if offset > len(text) {
		return "", 0, fault.Invalid("offset", "beyond the end of the text (%d bytes)", len(text))
	}
	for offset > 0 && offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset--
	}
	piece = text[offset:]
	if limit > 0 {
		piece = clip.Prefix(piece, max(limit, utf8.UTFMax))
	}
	return clip.Encoded(piece, most), offset, nil
}

// Is reports whether the part belongs to the text. It does if name and location are equal. If the part comes from a
// container, the part's path must equal the text's name or end with it.
func (p Part) Is(t Text) bool {
	switch {
	case p.In == "":
		return p.Name == t.Name || strings.HasSuffix(p.Name, "/"+t.Name)
	case t.In == "": // a container may have a copy of the repository's file
		return strings.HasSuffix(t.Name, "/"+p.Name)
	}
	return strings.EqualFold(p.In, t.In) && p.Name == t.Name
}
