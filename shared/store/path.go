package store

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Firestore's limits on names (https://firebase.google.com/docs/firestore/quotas). A full name, with its project and
// database, may have 6 KiB. maxPath leaves room for these.
const (
	maxID    = 1500    // bytes of one segment of a path
	maxPath  = 5 << 10 // bytes of a path
	maxDepth = 2 * 100 // segments of a path: 100 nested collections
	maxName  = 100     // bytes of a field's name; Firestore allows 1500, which no field needs
	maxText  = maxID   // bytes of a string field; an index stores no more, and a query would silently ignore the rest
)

// ValidPath returns nil if path names a document as Firestore defines it: an even number of segments separated by
// single slashes. Each segment is valid UTF-8 of 1 to 1500 bytes without NUL, and not ".", ".." or "__like_this__". The
// error is [ErrBadPath]. It does not repeat the path, which may contain a person's address.
func ValidPath(path string) error {
	if len(path) > maxPath {
		return fmt.Errorf("%w: %d bytes; the limit is %d", ErrBadPath, len(path), maxPath)
	}
	segments := strings.Split(path, "/")
	if len(segments)%2 != 0 || len(segments) > maxDepth {
		return fmt.Errorf("%w: %d segments; expected an even number up to %d", ErrBadPath, len(segments), maxDepth)
	}
	for i, s := range segments {
		if !validID(s) {
			return fmt.Errorf("%w: segment %d is invalid", ErrBadPath, i+1)
		}
	}
	return nil
}

func validID(s string) bool {
	switch {
	case s == "", s == ".", s == "..", len(s) > maxID:
		return false
	case strings.ContainsAny(s, "/\x00"), !utf8.ValidString(s):
		return false
	}
	return !reserved(s)
}

// reserved reports whether Firestore reserves the name.
func reserved(s string) bool {
	return len(s) >= 4 && strings.HasPrefix(s, "__") && strings.HasSuffix(s, "__")
}

// SplitPath splits a valid path into its collection ("runs/abc/events") and its ID ("000001").
func SplitPath(path string) (collection, id string) {
	i := strings.LastIndexByte(path, '/')
	return path[:i], path[i+1:]
}
