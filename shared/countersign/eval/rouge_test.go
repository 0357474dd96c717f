package eval

import (
	"fmt"
	"strings"
	"testing"
)

// TestRouge1 compares the scores with those of rouge_score, where it knows the script.
func TestRouge1(t *testing.T) {
	for texts, want := range map[[2]string]string{
		{"The quick brown fox jumps over the lazy dog", "The quick brown dog jumps on the log."}: "0.706",
		{"I rolled a 6-sided die.", "i ROLLED a 6 sided die!"}:                                   "1.000",
		{"The meetings were cancelled", "the meeting was cancelled"}:                             "0.750",
		{"", "Hello"}: "0.000", {"Hello", ""}: "0.000", {"Hello", "Good bye"}: "0.000", {"...", "..."}: "0.000",
		{"明日の会議", "明日の会議です"}: "0.833", {"Größe ändern", "größe ÄNDERN"}: "1.000",
	} {
		if got := fmt.Sprintf("%.3f", rouge1(texts[0], texts[1])); got != want {
			t.Errorf("%q: %s, want %s", texts, got, want)
		}
	}
}

// TestPorter has the examples of Porter's paper, as far as NLTK does not change them, and NLTK's own.
func TestPorter(t *testing.T) {
	const stems = "caresses caress, ponies poni, ties tie, cats cat, feed feed, plastered plaster, bled " +
		"bled, motoring motor, sing sing, conflated conflat, troubled troubl, sized size, hopping hop, tanned " +
		"tan, falling fall, hissing hiss, fizzed fizz, failing fail, filing file, happy happi, sky sky, enjoy " +
		"enjoy, relational relat, conditional condit, rational ration, digitizer digit, operator oper, " +
		"feudalism feudal, decisiveness decis, hopefulness hope, callousness callous, formality formal, " +
		"sensitivity sensit, triplicate triplic, formative form, formalize formal, electrical electr, hopeful " +
		"hope, goodness good, revival reviv, allowance allow, inference infer, airliner airlin, adjustable " +
		"adjust, replacement replac, adoption adopt, communism commun, activate activ, effective effect, " +
		"bowdlerize bowdler, probate probat, rate rate, cease ceas, control control, rolling roll, dying die, " +
		"news news, died die, cried cri, archaeology archaeolog, really realli, carefully care, geologic " +
		"geolog"
	for pair := range strings.SplitSeq(stems, ", ") {
		word, want, _ := strings.Cut(pair, " ")
		if got := porter(word); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}
