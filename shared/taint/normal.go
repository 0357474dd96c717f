package taint

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/visible"
)

// Normalize returns the one form of texts that are read alike: NFKC, in small letters, without invisible characters,
// and with one space for each stretch of white space and none at the ends.
func Normalize(s string) string {
	if plain(s) {
		return squeezed(s)
	}
	s = norm.NFKC.String(strings.ToLower(norm.NFKC.String(bare(s))))
	return squeezed(bare(norm.NFKC.String(strings.ToLower(s))))
}

// plain reports whether a text has nothing but printable ASCII and white space.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || c == 0x7f || c < ' ' && (c < '\t' || c > '\r') {
			return false
		}
	}
	return true
}

// squeezed joins white space, and puts ASCII letters in small ones.
func squeezed(s string) string {
	b := make([]byte, 0, len(s))
	space := true // at the beginning none is kept
	for i := range len(s) {
		switch c := s[i]; {
		case c == ' ' || c >= '\t' && c <= '\r':
			if !space {
				b = append(b, ' ')
			}
			space = true
			continue
		case c >= 'A' && c <= 'Z':
			b = append(b, c+('a'-'A'))
		default:
			b = append(b, c)
		}
		space = false
	}
	if n := len(b); n > 0 && b[n-1] == ' ' {
		b = b[:n-1]
	}
	return string(b)
}

// bare returns a text without invisible characters, in UTF-8, with plain spaces.
func bare(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < utf8.RuneSelf && r > ' ' && r != 0x7f:
			return r
		case unicode.IsSpace(r):
			return ' '
		case r < utf8.RuneSelf, unseen(r):
			return -1
		}
		return r
	}, s)
}

// unseen reports whether a character is invisible.
func unseen(r rune) bool {
	if r <= 0xffff {
		return known()[r>>6]&(1<<(r&63)) != 0
	}
	return visible.Dangerous(r)
}

// known has what [visible.Dangerous] says of the first 65,536 characters, since to ask it takes longer than all else
// that is done with one.
var known = sync.OnceValue(func() *[1 << 10]uint64 {
	var bits [1 << 10]uint64
	for r := range rune(1 << 16) {
		if visible.Dangerous(r) {
			bits[r>>6] |= 1 << (r & 63)
		}
	}
	return &bits
})

func quote(s string) string { return clip.Text(s, maxQuoted) }
