package taint

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// disguised returns the skeleton of a text, followed by the skeletons of its decoded parts. A skeleton holds the
// letters and digits, with look-alikes replaced, and without punctuation, spaces and accents. m may be nil. With marks,
// which only one of two compared texts has, the text backwards, and in [turned] alphabets follow.
func disguised(raw, normal string, m *marks) string {
	s := skeleton(normal, m)
	var others []string
	for _, d := range decodings(raw, leastRun) {
		others = append(others, Normalize(d))
	}
	others = append(others, inLatin(normal)...)
	if m != nil {
		others = append(others, backwards(normal))
		for _, other := range turned(raw) {
			others = append(others, Normalize(other))
		}
		for _, reading := range inLatin(normal) { // upside down
			others = append(others, backwards(reading))
		}
	}
	for _, d := range others {
		m.add(1, '\n', afterSign|afterSpace)
		s += "\n" + skeleton(d, m) // a skeleton contains no line feed, so no stretch crosses it
	}
	return s
}

func backwards(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

// turned returns a text in ROT13, ROT47 and Atbash. ROT13 replaces each letter by the letter 13 places further on.
// ROT47 does so with all visible characters of ASCII, and 47 places. In Atbash the alphabet runs backwards. Twice any
// of them is the text itself.
func turned(s string) []string {
	small := strings.ToLower(s)
	return []string{
		within('a', 'z', small, func(at rune) rune { return (at + 13) % 26 }),
		within('!', '~', s, func(at rune) rune { return (at + 47) % 94 }),
		within('a', 'z', small, func(at rune) rune { return 25 - at }),
	}
}

// within replaces each character from first to last by another one of them, according to their places.
func within(first, last rune, s string, place func(rune) rune) string {
	return strings.Map(func(r rune) rune {
		if r >= first && r <= last {
			return first + place(r-first)
		}
		return r
	}, s)
}

// marks holds a byte for each byte of a skeleton. Each byte has the digit that was written there, or 0, and flags for a
// sign or a space before it.
type marks []byte

const (
	afterSign  = 0x80
	afterSpace = 0x40
	digit      = 0x3f // the bits of a digit
)

// add adds the marks of the character c, which takes n bytes in the skeleton. before holds the flags of what precedes
// it.
func (m *marks) add(n int, c, before byte) {
	if m == nil {
		return
	}
	first := before
	if c >= '0' && c <= '9' {
		first |= c
	}
	*m = append(append(*m, first), make([]byte, n-1)...)
}

// sameDigits reports whether both have the same digits at the same positions.
func sameDigits(a, b marks) bool {
	return slices.EqualFunc(a, b, func(x, y byte) bool { return x&digit == y&digit })
}

// apart reports whether a sign, a space or an end of the text precedes the position.
func (m marks) apart(at int) bool { return at == len(m) || m[at]&afterSign != 0 }

// hasSpace reports whether a space is inside the stretch.
func (m marks) hasSpace(from, to int) bool {
	return slices.ContainsFunc(m[from+1:to], func(b byte) bool { return b&afterSpace != 0 })
}

// noDigit reports whether the marks contain no digit.
func (m marks) noDigit() bool {
	return !slices.ContainsFunc(m, func(b byte) bool { return b&digit != 0 })
}

// fold returns the skeleton form of an ASCII character, or 0 if it is left out. Digits become the letters that they
// resemble.
func fold(c byte) byte {
	const digits = "olzeasgtbg" // the letters that 0 to 9 resemble
	switch {
	case c == 'i':
		return 'l'
	case c >= 'a' && c <= 'z':
		return c
	case c >= '0' && c <= '9':
		return digits[c-'0']
	case c == '@':
		return 'a'
	case c == '$':
		return 's'
	}
	return 0
}

// skeleton returns the letters and digits of a normalised text, with look-alikes replaced, and adds their marks.
func skeleton(normal string, m *marks) string {
	out, stands := make([]byte, 0, len(normal)), byte(afterSign|afterSpace)
	for i := 0; i < len(normal); {
		c, size, before := normal[i], 1, len(out)
		if c < utf8.RuneSelf {
			if f := fold(c); f != 0 {
				out = append(out, f)
			}
		} else {
			var r rune
			r, size = utf8.DecodeRuneInString(normal[i:])
			out = appendFolded(out, r)
		}
		i += size
		if n := len(out) - before; n > 0 {
			m.add(n, c, stands)
			stands = 0
		} else if stands |= afterSign; c == ' ' {
			stands |= afterSpace
		}
	}
	return string(out)
}

// withoutAccent returns the letter without its accents.
func withoutAccent(r rune) rune {
	if d := norm.NFD.PropertiesString(string(r)).Decomposition(); len(d) > 0 {
		r, _ = utf8.DecodeRune(d)
	}
	return r
}

func appendFolded(out []byte, r rune) []byte {
	r = withoutAccent(r)
	if like, known := lookAlike()[r]; known {
		r = rune(like)
	}
	switch {
	case r < utf8.RuneSelf:
		if f := fold(byte(r)); f != 0 {
			return append(out, f)
		}
		return out
	case unicode.IsLetter(r) || unicode.IsNumber(r):
		return utf8.AppendRune(out, r)
	}
	return out
}
