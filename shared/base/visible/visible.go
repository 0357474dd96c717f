// Package visible makes a text safe to read before a decision. It replaces each character that is invisible, changes
// the direction of its neighbours or looks like a blank with an escape such as ⟨U+202E⟩. A person then reads the same
// text as the machine.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns a text of several lines in visible form. Line feeds and tabs stay; every other invisible character
// becomes its code point in angle brackets. hidden reports whether s had any. Two different texts never have the same
// visible form: a bracket that could begin an escape is itself escaped.
func Text(s string) (shown string, hidden bool) { return escape(s, "\n\t") }

// Line returns a text of one line, such as a subject or a title, in visible form. Line feeds and tabs are escaped too.
func Line(s string) (shown string, hidden bool) { return escape(s, "") }

func escape(s, allowed string) (string, bool) {
	var b strings.Builder
	b.Grow(len(s))
	hidden := false
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, "⟨0x%02X⟩", s[i])
			hidden = true
		case r == '⟨' && looksEscaped(s[i:]):
			b.WriteString("⟨U+27E8⟩")
		case strings.ContainsRune(allowed, r) || !Dangerous(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
			hidden = true
		}
	}
	return b.String(), hidden
}

func looksEscaped(s string) bool {
	return strings.HasPrefix(s, "⟨U+") || strings.HasPrefix(s, "⟨0x")
}

// blanks are characters that Unicode classifies as visible but no font draws: the braille blank, the Hangul fillers,
// and Khmer vowel signs of old encodings.
var blanks = map[rune]bool{'\u2800': true, '\u115F': true, '\u1160': true, '\u3164': true, '\uFFA0': true,
	'\u17B4': true, '\u17B5': true}

// Dangerous reports whether r is invisible or misleads a reader. That covers control and format characters
// (bidirectional, zero width, tags, soft hyphen, interlinear), variation selectors, private use, unassigned code
// points, line separators, and all blanks except the space, the no-break space and the ideographic space.
func Dangerous(r rune) bool {
	switch {
	case r < utf8.RuneSelf: // most characters, and this is asked of every one that is shown
		return r < ' ' || r == '\u007F'
	case r == '\u00A0' || r == '\u3000':
		return false
	case blanks[r] || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return true
	}
	return !unicode.IsGraphic(r) || unicode.Is(unicode.Z, r)
}

// Blank reports whether s has no visible character. It may be empty or consist of white space, control and format
// characters (zero width, bidirectional, tags), variation selectors and characters that no font draws. A character that
// this program does not know to be invisible, such as a new emoji, counts as visible.
func Blank(s string) bool {
	for _, r := range s {
		unseen := unicode.IsSpace(r) || unicode.IsControl(r) || blanks[r] ||
			unicode.In(r, unicode.Z, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
		if !unseen {
			return false
		}
	}
	return true
}
