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
