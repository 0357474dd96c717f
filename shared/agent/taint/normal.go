package taint

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// Normalize returns the normal form of a text: NFKC, in lower case, without invisible characters, with one space for
// each run of white space, and without spaces at both ends. Texts that people read alike have the same normal form.
func Normalize(s string) string {
	if plain(s) {
		return squeezed(s)
	}
	letters, b := letters(), strings.Builder{}
	b.Grow(len(s))
	for len(s) > 0 {
		n := easy(&b, letters, s)
		end := n
		for end < len(s) { // a hard character, with the letter before it, which it may change
			r, size := utf8.DecodeRuneInString(s[end:])
			if end-n >= atOnce && smallOf(letters, r) != 0 {
				break
			}
			end += size
		}
		b.WriteString(folded(s[n:end]))
		s = s[end:]
	}
	return squeezed(b.String())
}

// atOnce is the minimum number of bytes that are folded together, because each call has a fixed cost.
const atOnce = 64

// folded is [Normalize] for all characters, except that it does not join spaces.
func folded(s string) string {
	s = norm.NFKC.String(strings.ToLower(norm.NFKC.String(bare(s))))
	return bare(norm.NFKC.String(strings.ToLower(s)))
}

// easy writes the lower case of the beginning of s, up to the last letter before a hard character, which is one that
// letters maps to 0. It returns the number of bytes of s that it covers.
func easy(b *strings.Builder, letters *[endOfLetters]rune, s string) (n int) {
	last := rune(0)
	for i, r := range s {
		small := smallOf(letters, r)
		if last != 0 && small != 0 {
			b.WriteRune(last)
		}
		if small == 0 {
			return n
		}
		n, last = i, small
	}
	if last != 0 {
		b.WriteRune(last)
	}
	return len(s)
}

// endOfLetters is the end of the characters that are folded one by one: the alphabets and the usual punctuation.
const endOfLetters = 0x2060

// letters maps each character that becomes exactly one other character, whatever surrounds it, to that character. Other
// characters map to 0.
var letters = sync.OnceValue(func() *[endOfLetters]rune {
	var small [endOfLetters]rune
	for r := range rune(endOfLetters) {
		as, lower := folded(string(r)), unicode.ToLower(r)
		switch {
		case unicode.IsSpace(r):
			small[r] = ' '
		case as == string(lower) && stands(as) && stands(string(r)):
			small[r] = lower
		}
	}
	return &small
})

// stands reports whether a character is in its normal form and cannot combine with the one before it.
func stands(s string) bool {
	return norm.NFKC.IsNormalString(s) && norm.NFKC.PropertiesString(s).BoundaryBefore()
}

func smallOf(letters *[endOfLetters]rune, r rune) rune {
	if r >= endOfLetters {
		return 0
	}
	return letters[r]
}

// plain reports whether a text contains only printable ASCII and white space.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || c == 0x7f || c < ' ' && (c < '\t' || c > '\r') {
			return false
		}
	}
	return true
}

// squeezed joins white space, and converts ASCII letters to lower case.
func squeezed(s string) string {
	b := make([]byte, 0, len(s))
	space := true // no space is kept at the beginning
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

// bare returns a text as valid UTF-8 without invisible characters and with plain spaces.
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

// known caches [visible.Dangerous] for the first 65,536 characters. That call would take longer than all other work on
// a character.
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
