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

// Normalize returns the one form of texts that are read alike: NFKC, in small letters, without invisible characters,
// and with one space for each stretch of white space and none at the ends.
func Normalize(s string) string {
	if plain(s) {
		return squeezed(s)
	}
	letters, b := letters(), strings.Builder{}
	b.Grow(len(s))
	for len(s) > 0 {
		n := easy(&b, letters, s)
		end := n
		for end < len(s) { // what is not easy, with the letter before, which it may change, and some more
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

// atOnce is how many bytes at least are folded together, since each time costs something.
const atOnce = 64

// folded is [Normalize] of any characters, but for the joined spaces.
func folded(s string) string {
	s = norm.NFKC.String(strings.ToLower(norm.NFKC.String(bare(s))))
	return bare(norm.NFKC.String(strings.ToLower(s)))
}

// easy writes the small letters of the text's beginning, up to the last one before a character that is not easy, and
// returns how many bytes of the text these are.
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

// endOfLetters is behind the alphabets that are folded letter by letter, and the usual punctuation.
const endOfLetters = 0x2060

// letters has the small form of each character that becomes one other, whatever stands around it, or 0.
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

// stands reports whether a character is in its normal form, and no part of what stands before it.
func stands(s string) bool {
	return norm.NFKC.IsNormalString(s) && norm.NFKC.PropertiesString(s).BoundaryBefore()
}

func smallOf(letters *[endOfLetters]rune, r rune) rune {
	if r >= endOfLetters {
		return 0
	}
	return letters[r]
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
