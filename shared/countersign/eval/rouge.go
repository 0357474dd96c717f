package eval

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// rouge1 returns the F-measure of ROUGE-1 of an answer and its reference: how many words they share. Words are compared
// by their stems, in lower-case letters, as in Google's rouge_score with use_stemmer. Other than there, words of every
// script count, and each character of a script that is written without spaces is a word.
func rouge1(reference, answer string) float64 {
	want, got := stems(reference), stems(answer)
	if len(want) == 0 || len(got) == 0 {
		return 0
	}
	left := map[string]int{}
	for _, w := range want {
		left[w]++
	}
	shared := 0.0
	for _, w := range got {
		if left[w] > 0 {
			left[w]--
			shared++
		}
	}
	if shared == 0 {
		return 0
	}
	precision, recall := shared/float64(len(got)), shared/float64(len(want))
	return 2 * precision * recall / (precision + recall)
}

// stems returns the stems of the words of a text.
func stems(text string) (all []string) {
	var word []rune
	flush := func() {
		if len(word) > 0 {
			all = append(all, stemmed(string(word)))
			word = word[:0]
		}
	}
	for _, r := range strings.ToLower(norm.NFC.String(text)) {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Khmer, unicode.Lao):
			flush()
			all = append(all, string(r))
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			word = append(word, r)
		default:
			flush()
		}
	}
	flush()
	return all
}

// stemmed returns the stem of an English word of more than three letters, and any other word as it is.
func stemmed(word string) string {
	if len(word) <= 3 || strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return word
	}
	return porter(word)
}
