// Package clip shortens texts to a number of bytes without splitting a character.
package clip

import (
	"strings"
	"unicode/utf8"
)

const mark = " […]"

// Text returns s if it has at most n bytes. Otherwise it returns the longest start of s that fits into n bytes together
// with a mark of the cut. If not even one character fits, Text returns only the mark, which may be longer than n
// bytes.
func Text(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Prefix(s, n-len(mark)) + mark
}

// Lines returns s if it has at most n bytes. Otherwise it returns the first whole lines of s that fit into n bytes,
// followed by a line that marks the cut. If no line fits, Lines returns only that mark.
func Lines(s string, n int) string {
	if len(s) <= n {
		return s
	}
	fits := Prefix(s, n-len(mark)-1)
	return fits[:strings.LastIndexByte(fits, '\n')+1] + mark[1:] + "\n"
}

// Prefix returns the longest start of s that has at most n bytes and ends on a character boundary.
func Prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:max(n, 0)]
}

// Encoded returns the longest start of s that takes at most n bytes as a JSON string, not counting the quotes.
func Encoded(s string, n int) string {
	size := 0
	for i, r := range s {
		if size += encodedLen(r); size > n {
			return s[:i]
		}
	}
	return s
}

// EncodedLen returns the number of bytes that s takes as a JSON string, not counting the quotes.
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
