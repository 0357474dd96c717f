package run

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
)

// Size limits of the search terms of a thread, in bytes: of one term, of the terms from one text, and of all terms.
const (
	maxTerm  = 200
	maxNoted = 2 << 10
	maxTerms = 16 << 10
)

// Folded returns a text in the form that searches compare: lower case, without accents and invisible characters, with
// plain quotes and hyphens, and with single spaces in place of spaces and underscores.
func Folded(text string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(text) {
		if !unicode.In(r, unicode.Mn, unicode.Cf) {
			r = unicode.ToLower(r)
			if plain, ok := plainLetters[r]; ok {
				b.WriteString(plain)
			} else {
				b.WriteRune(r)
			}
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// plainLetters maps characters that have no decomposition to what people type for them.
var plainLetters = map[rune]string{
	'ß': "ss", 'ς': "σ", 'ł': "l", 'ø': "o", 'đ': "d", 'ð': "d", 'þ': "th", 'æ': "ae", 'œ': "oe", 'ı': "i", 'ħ': "h",
	'‘': "'", '’': "'", '‚': "'", 'ʼ': "'", '`': "'", '“': `"`, '”': `"`, '„': `"`, '«': `"`, '»': `"`,
	'‐': "-", '‒': "-", '–': "-", '—': "-", '−': "-", '_': " ",
}

// SearchWords returns the folded words of a search, without the quotes around them.
func SearchWords(text string) (words []string) {
	for _, word := range strings.Fields(Folded(text)) {
		if word = strings.Trim(word, `"'`); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// Note adds search terms to the thread. Each term is kept once, the newest last. When the terms outgrow their limit,
// the oldest are dropped.
func (t *Thread) Note(texts ...string) {
	all := slices.Clone(t.Terms) // a copy, because the commit of this thread may fail
	for _, text := range texts {
		for _, term := range termsOf(text) {
			all = append(slices.DeleteFunc(all, func(old string) bool { return old == term }), term)
		}
	}
	size := 0
	for i, term := range slices.Backward(all) {
		if size += len(term); size > maxTerms {
			all = all[i+1:]
			break
		}
	}
	t.Terms = all
}

// termsOf cuts a text into terms. No word that fits into a term is cut.
func termsOf(text string) (terms []string) {
	rest := clip.Text(Folded(clip.Text(text, maxNoted)), maxNoted)
	for len(rest) > maxTerm {
		end := strings.LastIndexByte(rest[:maxTerm+1], ' ')
		if end < 0 {
			end = len(clip.Prefix(rest, maxTerm))
		}
		terms, rest = append(terms, rest[:end]), strings.TrimPrefix(rest[end:], " ")
	}
	if rest != "" {
		terms = append(terms, rest)
	}
	return terms
}

// SearchTerms returns the search terms of the run's thread: the names of its tools, the titles and targets of its
// actions, and the user's words beside the decisions.
func SearchTerms(tools tool.Set, s *State) (terms []string) {
	for _, a := range s.Actions {
		t := tools[a.Tool]
		if t == nil {
			continue
		}
		terms = append(terms, a.Tool, ActionTitle(tools, a), a.Comment)
		if targets, err := t.Targets(a.Args); err == nil { // a refused call may have no targets
			for _, at := range targets {
				terms = append(terms, at.Value)
			}
		}
	}
	return terms
}

// Has reports whether every folded word occurs in the thread's title, its terms or its user's newest messages.
func (t *Thread) Has(words []string) bool {
	texts := []string{Folded(t.Title)}
	for _, term := range t.Terms {
		texts = append(texts, Folded(term)) // an earlier release may have kept it in another form
	}
	for _, m := range t.Log.Tail {
		if m.Role == RoleUser {
			texts = append(texts, Folded(m.Text))
		}
	}
	for _, word := range words {
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, word) }) {
			return false
		}
	}
	return true
}

// Ended returns how the thread's newest run ended, or "" while the run continues.
func (t *Thread) Ended() Status {
	n := len(t.Log.Tail)
	if n == 0 {
		return ""
	}
	switch last := t.Log.Tail[n-1]; {
	case last.Role == RoleUser || last.ApprovalID != "":
		return ""
	case strings.HasPrefix(last.Outcome, string(Failed)):
		return Failed
	}
	return Completed
}
