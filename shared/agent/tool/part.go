package tool

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// Part says which bytes of a text a result shows. A text that was shown in part is not replaced as a whole
// (Def.Replaces): what the model has not seen would be lost.
type Part struct {
	Text
	Version string // of the text; parts of different versions show nothing together
	From    int
	To      int
	Size    int    // of the whole text
	Lost    string // what is not shown and has no place in bytes, such as a secret that was taken out; empty: nothing
	Rest    string // how the rest is read, as a sentence
}

// Text names a text that can be read and replaced.
type Text struct {
	In   string // where it is, such as a repository; empty: in a container, as which the texts of each repository count
	Name string // a path, or what else it is called there
}

// Shows returns which parts of texts the result of the call shows.
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

// Replaces returns the texts that the call replaces as a whole.
func (t *Tool) Replaces(args json.RawMessage) (_ []Text, err error) {
	defer t.recoverPanic(&err, false)
	if !t.has.replaces {
		return nil, nil
	}
	return t.replaces(args)
}

// Piece returns the bytes of a text from an offset on, at most limit of them if that is positive, as far as they take
// at most most bytes in JSON, on whole characters. The error is of an offset behind the text's end.
func Piece(text string, offset, limit, most int) (piece string, from int, err error) {
	if offset > len(text) {
		return "", 0, fault.Invalid("offset", "the text has only %d bytes", len(text))
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

// Is reports whether a part is of the text: of the same name at the same place, or of a file in a container whose path
// ends with the text's.
func (p Part) Is(t Text) bool {
	if p.In == "" {
		return p.Name == t.Name || strings.HasSuffix(p.Name, "/"+t.Name)
	}
	return strings.EqualFold(p.In, t.In) && p.Name == t.Name
}
