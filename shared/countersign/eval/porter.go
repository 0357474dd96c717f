package eval

import "strings"

// porter returns the stem of an English word in lower-case letters, by the algorithm of M. F. Porter (1980) with the
// extensions of NLTK, which rouge_score uses.
func porter(w string) string {
	if stem, ok := irregular[w]; ok {
		return stem
	}
	for _, step := range []func(string) string{step1a, step1b, step1c, step2, step3, step4, step5} {
		w = step(w)
	}
	return w
}

// irregular has words that the rules would mistake for others.
var irregular = map[string]string{"skies": "sky", "sky": "sky", "dying": "die", "lying": "lie", "tying": "tie",
	"news": "news", "innings": "inning", "inning": "inning", "outings": "outing", "outing": "outing",
	"cannings": "canning", "canning": "canning", "howe": "howe", "proceed": "proceed", "exceed": "exceed",
	"succeed": "succeed"}

// consonant reports whether the letter is a consonant. A y is one at the beginning and after a vowel.
func consonant(w string, i int) bool {
	switch w[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return false
	case 'y':
		return i == 0 || !consonant(w, i-1)
	}
	return true
}

// measure returns the number of vowels that consonants follow, sequences counted once.
func measure(w string) (m int) {
	for i := 1; i < len(w); i++ {
		if consonant(w, i) && !consonant(w, i-1) {
			m++
		}
	}
	return m
}

func hasVowel(w string) bool {
	for i := range len(w) {
		if !consonant(w, i) {
			return true
		}
	}
	return false
}

// doubled reports whether the word ends in two equal consonants.
func doubled(w string) bool {
	n := len(w)
	return n >= 2 && w[n-1] == w[n-2] && consonant(w, n-1)
}

// short reports whether the word ends in consonant, vowel, consonant other than w, x and y, or is a vowel and a
// consonant.
func short(w string) bool {
	n := len(w)
	if n == 2 {
		return !consonant(w, 0) && consonant(w, 1)
	}
	return n >= 3 && consonant(w, n-3) && !consonant(w, n-2) && consonant(w, n-1) && !strings.Contains("wxy", w[n-1:])
}

// suffix is a rule: the suffix, and what replaces it.
type suffix struct{ old, new string }

// replaced applies the first rule whose suffix the word has, if the stem fulfils the condition.
func replaced(w string, rules []suffix, fits func(stem, old string) bool) string {
	for _, r := range rules {
		if stem, ok := strings.CutSuffix(w, r.old); ok {
			if fits(stem, r.old) {
				return stem + r.new
			}
			return w
		}
	}
	return w
}

func always(string, string) bool   { return true }
func positive(stem, _ string) bool { return measure(stem) > 0 }
func longer(stem, _ string) bool   { return measure(stem) > 1 }
func endsIn(stem string, set string) bool {
	return stem != "" && strings.Contains(set, stem[len(stem)-1:])
}

func step1a(w string) string {
	if strings.HasSuffix(w, "ies") && len(w) == 4 {
		return w[:len(w)-1]
	}
	return replaced(w, []suffix{{"sses", "ss"}, {"ies", "i"}, {"ss", "ss"}, {"s", ""}}, always)
}

func step1b(w string) string {
	if stem, ok := strings.CutSuffix(w, "ied"); ok {
		if len(w) == 4 {
			return stem + "ie"
		}
		return stem + "i"
	}
	if strings.HasSuffix(w, "eed") {
		return replaced(w, []suffix{{"eed", "ee"}}, positive)
	}
	stem, ok := strings.CutSuffix(w, "ed")
	if !ok || !hasVowel(stem) {
		if stem, ok = strings.CutSuffix(w, "ing"); !ok || !hasVowel(stem) {
			return w
		}
	}
	switch {
	case strings.HasSuffix(stem, "at"), strings.HasSuffix(stem, "bl"), strings.HasSuffix(stem, "iz"):
		return stem + "e"
	case doubled(stem):
		if endsIn(stem, "lsz") {
			return stem
		}
		return stem[:len(stem)-1]
	case measure(stem) == 1 && short(stem):
		return stem + "e"
	}
	return stem
}

func step1c(w string) string {
	return replaced(w, []suffix{{"y", "i"}}, func(stem, _ string) bool {
		return len(stem) > 1 && consonant(stem, len(stem)-1)
	})
}

func step2(w string) string {
	if stem, ok := strings.CutSuffix(w, "alli"); ok && measure(stem) > 0 {
		return step2(stem + "al")
	}
	if stem, ok := strings.CutSuffix(w, "logi"); ok {
		if measure(stem+"l") > 0 {
			return stem + "log"
		}
		return w
	}
	return replaced(w, []suffix{{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"},
		{"izer", "ize"}, {"bli", "ble"}, {"alli", "al"}, {"entli", "ent"}, {"eli", "e"}, {"ousli", "ous"},
		{"ization", "ize"}, {"ation", "ate"}, {"ator", "ate"}, {"alism", "al"}, {"iveness", "ive"}, {"fulness", "ful"},
		{"ousness", "ous"}, {"aliti", "al"}, {"iviti", "ive"}, {"biliti", "ble"}, {"fulli", "ful"}}, positive)
}

func step3(w string) string {
	return replaced(w, []suffix{{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"},
		{"ful", ""}, {"ness", ""}}, positive)
}

func step4(w string) string {
	return replaced(w, []suffix{{"al", ""}, {"ance", ""}, {"ence", ""}, {"er", ""}, {"ic", ""}, {"able", ""},
		{"ible", ""}, {"ant", ""}, {"ement", ""}, {"ment", ""}, {"ent", ""}, {"ion", ""}, {"ou", ""}, {"ism", ""},
		{"ate", ""}, {"iti", ""}, {"ous", ""}, {"ive", ""}, {"ize", ""}}, func(stem, old string) bool {
		return longer(stem, old) && (old != "ion" || endsIn(stem, "st"))
	})
}

func step5(w string) string {
	w = replaced(w, []suffix{{"e", ""}}, func(stem, _ string) bool {
		return measure(stem) > 1 || measure(stem) == 1 && !short(stem)
	})
	if strings.HasSuffix(w, "ll") && measure(w[:len(w)-1]) > 1 {
		return w[:len(w)-1]
	}
	return w
}
