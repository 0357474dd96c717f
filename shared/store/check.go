package store

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// DataField is the name under which a backend stores Doc.Data. PreviousField is the name under which it may store the
// version that an update replaced. No field of a document may have either name.
const (
	DataField     = "data"
	PreviousField = "previous"
)

// CheckGet checks the paths of a Get before anything is sent. It returns [ErrBadPath] for a bad path and [ErrTooLarge]
// for more than [MaxReads] paths.
func CheckGet(paths []string) error {
	if len(paths) > MaxReads {
		return fmt.Errorf("%w: %d paths in one Get; the limit is %d", ErrTooLarge, len(paths), MaxReads)
	}
	for _, p := range paths {
		if err := ValidPath(p); err != nil {
			return err
		}
	}
	return nil
}

// CheckCommit checks a commit before anything is sent. It returns [ErrTooLarge] for a commit over a limit and
// [ErrBadPath] for a bad path. It returns [ErrInvalid] for a mistake of the program: no writes, two writes to one path,
// an update or a check without a version, a version that no store can have returned, a field whose type [Doc] does not
// allow, or data that is not UTF-8.
func CheckCommit(writes []Write) error {
	if len(writes) == 0 {
		return fmt.Errorf("%w: a commit without writes", ErrInvalid)
	}
	if len(writes) > MaxWrites {
		return fmt.Errorf("%w: %d writes in one commit; the limit is %d", ErrTooLarge, len(writes), MaxWrites)
	}
	total, seen := 0, make(map[string]bool, len(writes))
	for i, w := range writes {
		size, err := checkWrite(w)
		if err != nil {
			return fmt.Errorf("write %d: %w", i+1, err)
		}
		if seen[w.Doc.Path] {
			return fmt.Errorf("write %d: %w: the commit writes this path twice", i+1, ErrInvalid)
		}
		seen[w.Doc.Path] = true
		if total += size; total > MaxCommit {
			return fmt.Errorf("%w: the commit has more than %d bytes", ErrTooLarge, MaxCommit)
		}
	}
	return nil
}

func checkWrite(w Write) (size int, err error) {
	if err := ValidPath(w.Doc.Path); err != nil {
		return 0, err
	}
	if err := checkVersion(w); err != nil {
		return 0, err
	}
	if w.Op == OpDelete || w.Op == OpCheck {
		return w.Doc.Size(), nil
	}
	for name, v := range w.Doc.Fields {
		if !validName(name) {
			return 0, fmt.Errorf("%w: invalid field name", ErrInvalid)
		}
		if _, err := Canonical(v); err != nil {
			return 0, fmt.Errorf("field %s: %w", name, err)
		}
	}
	if size = w.Doc.Size(); size > MaxDoc {
		return 0, fmt.Errorf("%w: a document of %d bytes; the limit is %d", ErrTooLarge, size, MaxDoc)
	}
	if !utf8.Valid(w.Doc.Data) {
		return 0, fmt.Errorf("%w: data that is not UTF-8", ErrInvalid)
	}
	return size, nil
}

func checkVersion(w Write) error {
	v := w.Doc.Version
	switch {
	case w.Op < OpCreate || w.Op > OpCheck:
		return fmt.Errorf("%w: an unknown operation", ErrInvalid)
	case (w.Op == OpUpdate || w.Op == OpCheck) && v.IsZero():
		return fmt.Errorf("%w: an update or a check without the version that was read", ErrInvalid)
	case !v.IsZero() && (!v.Equal(v.Truncate(time.Microsecond)) || !inRange(v)):
		return fmt.Errorf("%w: a version that the store has never returned", ErrInvalid)
	}
	return nil
}

// validName reports whether s is an identifier, which needs no quotes in any backend, and not a reserved name.
func validName(s string) bool {
	if s == "" || len(s) > maxName || s == DataField || s == PreviousField || reserved(s) {
		return false
	}
	for i, c := range []byte(s) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// Canonical returns a field's value in the form that every backend stores. A time is in UTC and truncated to
// microseconds. Canonical returns [ErrInvalid] for a value that cannot be stored.
func Canonical(v any) (any, error) {
	switch v := v.(type) {
	case bool, int64:
		return v, nil
	case string:
		if len(v) > maxText {
			return nil, fmt.Errorf("%w: a text of %d bytes; the limit is %d", ErrInvalid, len(v), maxText)
		}
		if !utf8.ValidString(v) {
			return nil, fmt.Errorf("%w: a text that is not UTF-8", ErrInvalid)
		}
		return v, nil
	case time.Time:
		v = v.UTC().Truncate(time.Microsecond)
		if !inRange(v) {
			return nil, fmt.Errorf("%w: a time outside of the years 1 to 9999", ErrInvalid)
		}
		return v, nil
	}
	return nil, fmt.Errorf("%w: a value of type %T", ErrInvalid, v)
}

// inRange reports whether a protobuf Timestamp can represent t.
func inRange(t time.Time) bool {
	y := t.UTC().Year()
	return 1 <= y && y <= 9999
}

// Size returns the size of the document in bytes, including PreviousField, as Firestore counts it
// (https://firebase.google.com/docs/firestore/storage-size).
func (d Doc) Size() int {
	const name, document, text, number = 16, 32, 1, 8
	n := name + document + len(d.Path) + 1
	n += len(DataField) + 1 + len(d.Data) + text
	n += len(PreviousField) + 1 + number
	for k, v := range d.Fields {
		n += len(k) + 1
		switch v := v.(type) {
		case string:
			n += len(v) + text
		case bool:
			n++
		default:
			n += number
		}
	}
	return n
}

// Interrupted returns the error of a call that ctx ended. The error wraps cause, and also [ErrUnavailable] if the
// deadline passed.
func Interrupted(method string, cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("store: %s: %w: %w", method, ErrUnavailable, cause)
	}
	return fmt.Errorf("store: %s: %w", method, cause)
}
