// Package clip shortens texts to a number of bytes without splitting a character.
package clip

import (
	"strings"
	"unicode/utf8"
)

const mark = " […]"

// Text returns s, or if it has more than n bytes, as much of its start as fits into n bytes with a mark of the cut. A
// text of which nothing fits becomes the mark alone.
func Text(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Prefix(s, n-len(mark)) + mark
}

// Lines returns s, or if it has more than n bytes, as many of its lines as fit into n bytes with a line that is the
// mark of the cut. A text of which no line fits becomes that mark alone.
func Lines(s string, n int) string {
	if len(s) <= n {
		return s
	}
	fits := Prefix(s, n-len(mark)-1)
	return fits[:strings.LastIndexByte(fits, '\n')+1] + mark[1:] + "\n"
}

// Prefix returns the longest start of s that has at most n bytes and does not end within a character.
func Prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:max(n, 0)]
}

// Encoded returns the longest start of s that takes at most n bytes in JSON without its quotes.
func Encoded(s string, n int) string {
	size := 0
	for i, r := range s {
		if size += encodedLen(r); size > n {
			return s[:i]
		}
	}
	return s
}

// EncodedLen returns how many bytes s takes in JSON without its quotes.
func EncodedLen(s string) (n int) {
	for _, r := range s {
		n += encodedLen(r)
	}
	return n
}

func encodedLen(r rune) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\t' || r == '\r':
		return 2
	case r < ' ' || r == '\u2028' || r == '\u2029':
		return 6
	}
	return utf8.RuneLen(r)
}
