package taint

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// spelling is a text in every way that it can be read: as it is, and with its encoded parts decoded.
type spelling struct {
	text   string // in its normal form; the decoded parts are on lines of their own
	joined string // only its letters and digits
}

func spell(words string) spelling {
	all := []string{words}
	all = append(all, decodings(words, leastWord)...)
	for _, written := range all {
		all = append(all, turned(written)...)
	}
	for i := range all {
		all[i] = Normalize(all[i])
		for _, other := range []string{latin(all[i]), said(all[i]), letterly(all[i])} {
			if other != all[i] {
				all = append(all, other)
			}
		}
		all = append(all, backwards(all[i]))
	}
	text := strings.Join(all, "\n")
	return spelling{text, lettersOf(text)}
}

// latin replaces digits of other scripts, letters with accents, and characters that look like Latin letters or digits
// with those letters and digits.
func latin(s string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf {
			return r
		}
		if d := digitOf(r); d != 0 {
			return d
		}
		r = withoutAccent(r)
		if like, known := lookAlike()[r]; known {
			return rune(like)
		}
		return r
	}, s)
}

// letterly returns a text with the same letter for letters and digits that resemble each other, except in numbers:
// p4ssw0rd and passw0rd are the same.
func letterly(s string) string {
	return mixedWords.ReplaceAllStringFunc(s, func(word string) string {
		if strings.Trim(word, "0123456789") == "" {
			return word
		}
		return strings.Map(func(r rune) rune { return rune(fold(byte(r))) }, word)
	})
}

var mixedWords = lazyregexp.New(`[a-z0-9]+`)

// said returns a text with signs and digits for their names, also between brackets: evil [dot] example. Digits that
// follow each other are one number.
func said(s string) string {
	s = saidSigns.ReplaceAllStringFunc(s, func(sign string) string {
		switch strings.Trim(sign, " -_[](){}<>") {
		case "slash":
			return "/"
		case "colon":
			return ":"
		}
		return "."
	})
	return spacedDigits.ReplaceAllStringFunc(spoken.Replace(s), func(digits string) string {
		return strings.ReplaceAll(digits, " ", "")
	})
}

var spacedDigits = lazyregexp.New(`\b[0-9](?: [0-9])+\b`)

// digitOf returns the ASCII digit for a decimal digit of another script, or 0. Unicode has the ten digits of a script
// one after the other.
func digitOf(r rune) rune {
	for _, digits := range unicode.Nd.R16 {
		if lo, hi := rune(digits.Lo), rune(digits.Hi); r >= lo && r <= hi {
			return '0' + (r-lo)%10
		}
	}
	for _, digits := range unicode.Nd.R32 {
		if lo, hi := rune(digits.Lo), rune(digits.Hi); r >= lo && r <= hi {
			return '0' + (r-lo)%10
		}
	}
	return 0
}

// saidSigns finds the words for the signs of an address.
var saidSigns = lazyregexp.New(`[ _\[({<-]+(?:dot|punkt|punto|point|ponto|kropka|точка|slash|colon)[ _\])}>-]+|点|ドット`)

// spoken replaces the words for digits.
var spoken = strings.NewReplacer("zero", "0", "one", "1", "two", "2", "three", "3", "four", "4", "five", "5", "six",
	"6", "seven", "7", "eight", "8", "nine", "9")

// lettersOf returns the letters and digits of a text.
func lettersOf(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			return r
		}
		return -1
	}, s)
}
