package run

import (
	"regexp/syntax"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// forms are regular expressions that match at the start of a word. A word is tried only with the forms that can begin
// with its first letters: a search for each form in a whole answer took longer than the rest of the turn.
type forms struct {
	byStart func() map[string][]*lazyregexp.Regexp
}

// startLetters is how many letters of a word choose the forms that it is tried with.
const startLetters = 5

// wordForms returns the forms. Their starts are found at the first use, and each form is compiled when a word needs it.
func wordForms(patterns ...string) *forms {
	return &forms{sync.OnceValue(func() map[string][]*lazyregexp.Regexp {
		all := map[string][]*lazyregexp.Regexp{}
		for _, p := range patterns {
			form := lazyregexp.New("^(?:" + p + ")")
			for start := range starts(p) {
				all[start] = append(all[start], form)
			}
		}
		return all
	})}
}

// begin reports whether a form matches at the start of a word of the text.
func (f *forms) begin(text string) bool {
	for text != "" {
		if f.match(text) {
			return true
		}
		_, word := firstWord(text)
		_, gap := utf8.DecodeRuneInString(text[len(word):])
		text = text[len(word)+gap:]
	}
	return false
}

// match reports whether a form matches at the start of the text.
func (f *forms) match(text string) bool {
	start, _ := firstWord(text)
	return slices.ContainsFunc(f.byStart()[start], func(form *lazyregexp.Regexp) bool { return form.MatchString(text) })
}

// firstWord returns the word with which the text begins, and the first letters of the word. Both may be empty.
func firstWord(text string) (start, word string) {
	letters, end := 0, len(text)
	for i, r := range text {
		if !unicode.IsLetter(r) {
			return text[:min(i, end)], text[:i]
		}
		if letters++; letters == startLetters {
			end = i + utf8.RuneLen(r)
		}
	}
	return text[:end], text
}

// starts returns the first letters of the words that the pattern can match.
func starts(pattern string) map[string]bool {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		panic(err)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		panic(err)
	}
	all := map[string]bool{}
	addStarts(all, prog, uint32(prog.Start), "")
	return all
}

// addStarts adds the starts of what the program matches from an instruction on, after the letters of start.
func addStarts(all map[string]bool, prog *syntax.Prog, at uint32, start string) {
	in := &prog.Inst[at]
	switch in.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		addStarts(all, prog, in.Out, start)
		addStarts(all, prog, in.Arg, start)
	case syntax.InstCapture, syntax.InstEmptyWidth, syntax.InstNop:
		addStarts(all, prog, in.Out, start)
	case syntax.InstMatch:
		all[start] = true
	default:
		for _, r := range inClass(in) {
			switch longer := start + string(r); {
			case !unicode.IsLetter(r):
				all[start] = true
			case utf8.RuneCountInString(longer) == startLetters:
				all[longer] = true
			default:
				addStarts(all, prog, in.Out, longer)
			}
		}
	}
}

// inClass returns the characters that the instruction matches. For a large class, which can only be [^\pL] here, it
// returns one of them.
func inClass(in *syntax.Inst) (runes []rune) {
	if len(in.Rune) == 1 {
		return in.Rune
	}
	for i := 0; i+1 < len(in.Rune); i += 2 {
		for r := in.Rune[i]; r <= in.Rune[i+1]; r++ {
			if runes = append(runes, r); len(runes) > 8 {
				return runes[:1]
			}
		}
	}
	return runes
}
