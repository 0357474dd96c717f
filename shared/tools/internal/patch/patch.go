// Package patch changes text files by exact replacements, and shows the change of a file as a diff.
package patch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// Limits of the replacements of one file.
const (
	MaxReplacements = 50
	MaxFile         = 1 << 20 // bytes of a file that can be patched
)

// Replacement is one exact change of a text.
type Replacement struct {
	Old string `json:"old" jsonschema:"Text that occurs exactly once in the file, with its line breaks and indentation."`
	New string `json:"new" jsonschema:"The text that replaces it; empty: it is deleted."`
}

// Check checks the replacements without the text. It returns their size in bytes. at returns the name of a field of the
// replacement with this index.
func Check(list []Replacement, at func(i int, name string) string) (size int, err error) {
	if len(list) > MaxReplacements {
		return 0, fault.Invalid(at(0, ""), "%d replacements; the limit is %d", len(list), MaxReplacements)
	}
	for i, r := range list {
		switch {
		case r.Old == "":
			return 0, fault.Invalid(at(i, "old"), "the text to replace is required")
		case r.Old == r.New:
			return 0, fault.Invalid(at(i, "new"), "old and new are equal")
		case strings.ContainsRune(r.Old, 0) || strings.ContainsRune(r.New, 0):
			return 0, fault.Invalid(at(i, "new"), "a text without NUL is required")
		}
		size += len(r.Old) + len(r.New)
	}
	return size, nil
}

// Sum returns the SHA-256 of a text in hex. It identifies a version of a file.
func Sum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// found is a replacement with its place in the text.
type found struct {
	Replacement
	from int
}

// Apply returns the text with all replacements made. Each old text must occur exactly once in the given text, and no
// two of them may overlap. The error is a ValidationError that names the replacement by its number.
func Apply(text string, list []Replacement) (string, error) {
	places := make([]found, len(list))
	for i, r := range list {
		from := strings.Index(text, r.Old)
		switch {
		case from < 0:
			return "", fault.Invalid(fmt.Sprintf("edits/%d/old", i), "the file does not contain this text%s",
				hint(text, r.Old))
		case strings.Contains(text[from+1:], r.Old):
			return "", fault.Invalid(fmt.Sprintf("edits/%d/old", i), "the file contains this text more than once: add "+
				"the lines around it")
		}
		places[i] = found{r, from}
	}
	slices.SortFunc(places, func(a, b found) int { return a.from - b.from })
	var out strings.Builder
	at := 0
	for _, p := range places {
		if p.from < at {
			return "", fault.Invalid("edits", "two replacements overlap: combine them into one")
		}
		out.WriteString(text[at:p.from])
		out.WriteString(p.New)
		at = p.from + len(p.Old)
	}
	out.WriteString(text[at:])
	return out.String(), nil
}

// hint describes the white space that differs, if nothing else differs.
func hint(text, old string) string {
	plain := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	switch {
	case strings.Contains(text, "\r\n") && strings.Contains(strings.ReplaceAll(text, "\r\n", "\n"), old):
		return ": its lines end with CR LF"
	case strings.Contains(plain(text), plain(old)):
		return " with this white space: copy it exactly"
	}
	return ""
}
