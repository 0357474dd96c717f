package visible

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Limits of Suspicious.
const (
	blankLines = 20  // consecutive line feeds
	blankSpace = 200 // consecutive spaces
	marks      = 4   // combining marks on one letter
	quoted     = 40  // runes of a word that a warning quotes
)

// scripts lists the scripts whose letters can imitate each other.
var scripts = []struct {
	name  string
	table *unicode.RangeTable
}{
	{"Latin", unicode.Latin}, {"Cyrillic", unicode.Cyrillic}, {"Greek", unicode.Greek}, {"Armenian", unicode.Armenian},
	{"Cherokee", unicode.Cherokee}, {"Coptic", unicode.Coptic}, {"Lisu", unicode.Lisu},
}

// withoutSpaces removes spaces, tabs and carriage returns. Building the replacer takes longer than applying it to
// most texts.
var withoutSpaces = strings.NewReplacer("\r", "", " ", "", "\t", "")

// Suspicious returns warnings about text that deserves a second look: words that mix letters of several scripts,
// look-alikes of plain letters, stacked marks, letters in an unusual composition, and long blank stretches with text
// after them. It returns at most one sentence of each kind. Hidden characters are reported by Text, not here.
func Suspicious(s string) []string {
	var out []string
	words := strings.FieldsFunc(s,
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.Is(unicode.M, r) && !unicode.IsDigit(r) })
	words = slices.DeleteFunc(words, allASCII) // they have one script and no look-alikes
	for _, w := range words {
		if found := scriptsOf(w); len(found) > 1 {
			out = append(out, fmt.Sprintf("The word “%s” mixes %s letters.", quote(w), strings.Join(found, " and ")))
			break
		}
	}
	for _, w := range words {
		if strings.ContainsFunc(w, imitates) {
			out = append(out, fmt.Sprintf("The word “%s” is written with look-alikes of plain letters.", quote(w)))
			break
		}
	}
	if longest(s, func(r rune) bool { return unicode.Is(unicode.Mn, r) }) > marks {
		out = append(out, "Marks are piled up on a letter and may cover the text around it.")
	}
	if !norm.NFC.IsNormalString(s) {
		out = append(out, "Some letters are composed in an unusual way: the text may differ from one that "+
			"looks the same.")
	}
	if longest(withoutSpaces.Replace(s),
		func(r rune) bool { return r == '\n' }) > blankLines ||
		longest(s, func(r rune) bool { return r == ' ' || r == '\t' || r == '\u00A0' || r == '\u3000' }) > blankSpace {
		out = append(out, "There is a long blank stretch, and the text continues after it: read to the end.")
	}
	return out
}

func allASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

func scriptsOf(word string) []string {
	var found []string
	for _, s := range scripts {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(s.table, r) && unicode.IsLetter(r) }) {
			found = append(found, s.name)
		}
	}
	return found
}

// imitates reports whether r is a full-width or mathematical letter, which looks almost like a plain one.
func imitates(r rune) bool { return r >= 0xFF21 && r <= 0xFF5A || r >= 0x1D400 && r <= 0x1D7FF }

func longest(s string, is func(rune) bool) int {
	most, run := 0, 0
	for _, r := range s {
		if run++; !is(r) {
			run = 0
		}
		most = max(most, run)
	}
	return most
}

func quote(word string) string {
	runes := []rune(word)
	if len(runes) > quoted {
		word = string(runes[:quoted]) + "…"
	}
	shown, _ := Line(word)
	return shown
}
