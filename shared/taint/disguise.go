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

// folds has the form of each ASCII character, or 0 where it is left out. Digits that stand for letters are these.
var folds = func() (f [utf8.RuneSelf]byte) {
	for c := range f {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			f[c] = byte(c)
		}
	}
	for as, letter := range map[byte]byte{'0': 'o', '1': 'l', 'i': 'l', '3': 'e', '4': 'a', '@': 'a', '5': 's',
		'$': 's', '7': 't', '8': 'b', '9': 'g', '6': 'g', '2': 'z'} {
		f[as] = letter
	}
	return f
}()

// skeleton returns the letters and digits of a normalised text, look-alikes as one.
func skeleton(normal string) string {
	out := make([]byte, 0, len(normal))
	for i := 0; i < len(normal); {
		if c := normal[i]; c < utf8.RuneSelf {
			if f := folds[c]; f != 0 {
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
		if f := folds[r]; f != 0 {
			return append(out, f)
		}
		return out
	case unicode.IsLetter(r) || unicode.IsNumber(r):
		return utf8.AppendRune(out, r)
	}
	return out
}
