package config

import (
	"slices"
	"strings"
)

// NearMiss is an environment variable that is not a setting, and the setting whose name it resembles.
type NearMiss struct{ Variable, Meant string }

// NearMisses returns the environment variables that look like misspelt settings, sorted. A misspelling differs in
// underscores, in one letter or in one word, or is another program's name for the same. A setting that is set itself is
// never the one meant.
func (c Config) NearMisses(environ []string) (all []NearMiss) {
	set := map[string]bool{}
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		set[name] = true
	}
	for name := range set {
		if slices.Contains(c.known, name) {
			continue
		}
		for _, resembles := range []func(name, known string) bool{elsewhere, sameLetters, sameWords} {
			i := slices.IndexFunc(c.known, func(known string) bool { return !set[known] && resembles(name, known) })
			if i >= 0 {
				all = append(all, NearMiss{name, c.known[i]})
				break
			}
		}
	}
	slices.SortFunc(all, func(a, b NearMiss) int { return strings.Compare(a.Variable, b.Variable) })
	return all
}

// names maps variables of other programs to the setting for the same thing.
var names = map[string]string{
	"GOOGLE_API_KEY":               "GEMINI_API_KEY",
	"GOOGLE_GENAI_API_KEY":         "GEMINI_API_KEY",
	"GOOGLE_GENERATIVE_AI_API_KEY": "GEMINI_API_KEY",
	"CORS_ORIGIN":                  "ALLOWED_ORIGINS",
	"CORS_ORIGINS":                 "ALLOWED_ORIGINS",
	"CORS_ALLOWED_ORIGINS":         "ALLOWED_ORIGINS",
}

// elsewhere reports whether another program has the name for the setting, or the name is the setting's with the word
// that says what it holds.
func elsewhere(name, known string) bool {
	name = strings.ToUpper(name)
	for _, kind := range []string{"_DIR", "_FOLDER", "_PATH", "_FILE"} {
		if name == known+kind {
			return true
		}
	}
	return names[name] == known
}

// leastLetters is the minimum length of a name for one letter to count as a typing error.
const leastLetters = 6

// sameLetters reports whether the names differ in underscores or in one letter.
func sameLetters(name, known string) bool {
	joined, knownJoined := strings.ReplaceAll(strings.ToUpper(name), "_", ""), strings.ReplaceAll(known, "_", "")
	return joined == knownJoined || len(knownJoined) >= leastLetters && oneSlip(joined, knownJoined)
}

// sameWords reports whether the names differ in one word.
func sameWords(name, known string) bool {
	words, knownWords := strings.Split(strings.ToUpper(name), "_"), strings.Split(known, "_")
	return oneLess(words, knownWords) || oneLess(knownWords, words)
}

// oneSlip reports whether a and b differ by one inserted, deleted, replaced or swapped letter.
func oneSlip(a, b string) bool {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	a, b = a[n:], b[n:]
	return len(a) > 0 && a[1:] == b || len(b) > 0 && a == b[1:] || len(a) > 0 && len(b) > 0 && a[1:] == b[1:] ||
		len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] && a[2:] == b[2:]
}

// oneLess reports whether few equals many without one word. few must have at least two words.
func oneLess(few, many []string) bool {
	if len(few) < 2 || len(few)+1 != len(many) {
		return false
	}
	for i := range many {
		if slices.Equal(few, slices.Delete(slices.Clone(many), i, i+1)) {
			return true
		}
	}
	return false
}
