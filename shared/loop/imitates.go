package loop

import (
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/countersign-run/countersign/shared/visible"
)

// spoofsSummary reports whether a text of the model's could be taken for the server's own summary: it has the summary's
// first words, however they are spaced or hidden, or words that mix the letters of several scripts.
func spoofsSummary(text string) bool {
	plain := strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && visible.Dangerous(r) {
			return -1
		}
		return r
	}, norm.NFKC.String(text))
	words := strings.Join(strings.Fields(strings.ToLower(plain)), " ")
	return strings.Contains(words, "on record") || len(visible.Suspicious(words)) > 0
}
