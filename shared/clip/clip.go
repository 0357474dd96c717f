// Package clip shortens texts to a number of bytes without splitting a character.
package clip

import "unicode/utf8"

const mark = " […]"

// Text returns s, or if it has more than n bytes, as much of its start as fits into n bytes with a mark of the cut. A
// text of which nothing fits becomes the mark alone.
func Text(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Prefix(s, n-len(mark)) + mark
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
