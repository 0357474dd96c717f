package demomodel

import (
	"slices"
	"strings"
)

// dayWords are the words for days that people misspell.
var dayWords = []string{"tomorrow", "tonight", "today", "monday", "tuesday", "wednesday", "thursday", "friday",
	"saturday", "sunday", "january", "february", "march", "april", "august", "september", "october", "november",
	"december"}

// shortDays are short forms that no rule reads.
var shortDays = map[string]string{"tmrw": "tomorrow", "tmr": "tomorrow", "tmw": "tomorrow", "tomo": "tomorrow",
	"2morrow": "tomorrow", "2moro": "tomorrow", "2nite": "tonight", "tonite": "tonight", "2day": "today"}

// misspelt returns a word of the text that is almost a word for a day, and the correct word.
func misspelt(left text) (word, day string) {
	for _, w := range strings.FieldsFunc(strings.ToLower(left.mask), notOfWord) {
		if day := shortDays[w]; day != "" {
			return w, day
		}
		at := slices.IndexFunc(dayWords, func(day string) bool { return almost(w, day) })
		if at >= 0 {
			return w, dayWords[at]
		}
	}
	return "", ""
}

func notOfWord(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }

// almost reports whether a word is another one with a typo: two in a long word, one in a short word, none in the first
// letter.
func almost(w, day string) bool {
	slips := 1
	if len(day) >= 8 {
		slips = 2
	}
	if w == day || w == "" || w[0] != day[0] || len(w) < 4 || strings.TrimSuffix(w, "s") == day {
		return false
	}
	return distance(w, day) <= slips
}

// distance returns how many letters must be added, removed, replaced or swapped with the next to turn a into b.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
		for j := range rows[i] {
			switch {
			case i == 0:
				rows[0][j] = j
			case j > 0:
				cost := 1
				if a[i-1] == b[j-1] {
					cost = 0
				}
				rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
				}
			}
		}
	}
	return rows[len(a)][len(b)]
}
