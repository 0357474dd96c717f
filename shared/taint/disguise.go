package taint

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// disguised returns what a text says without what hides it: its letters and digits, look-alikes as one, and behind them
// those of what is encoded in it. Punctuation, spaces and marks above letters are left out.
func disguised(raw, normal string) string {
	s := skeleton(normal)
	for _, d := range decodings(raw, leastRun) {
		s += "\n" + skeleton(Normalize(d)) // the line feed is in no skeleton, so that no stretch goes over it
	}
	return s
}

// fold returns the form of an ASCII character, or 0 where it is left out. Digits that stand for letters are these.
func fold(c byte) byte {
	const digits = "olzeasgtbg" // as which 0 to 9 are read
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

// skeleton returns the letters and digits of a normalised text, look-alikes as one.
func skeleton(normal string) string {
	out := make([]byte, 0, len(normal))
	for i := 0; i < len(normal); {
		if c := normal[i]; c < utf8.RuneSelf {
			if f := fold(c); f != 0 {
				out = append(out, f)
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(normal[i:])
		i += size
		out = appendFolded(out, r)
	}
	return string(out)
}

func appendFolded(out []byte, r rune) []byte {
	if d := norm.NFD.PropertiesString(string(r)).Decomposition(); len(d) > 0 {
		r, _ = utf8.DecodeRune(d) // the letter without its marks
	}
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
