package run

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
)

// Size limits of the search terms of a thread, in bytes: of one term, and of all terms.
const (
	maxTerm  = 200
	maxTerms = 16 << 10
)

// Folded returns a text in the form that searches compare: lower case, without accents, and with single spaces.
func Folded(text string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(text) {
		if !unicode.Is(unicode.Mn, r) {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// Note adds search terms to the thread. Each term is kept once, the newest last. When the terms outgrow their limit,
// the oldest are dropped.
func (t *Thread) Note(terms ...string) {
	all := slices.Clone(t.Terms) // a copy, because the commit of this thread may fail
	for _, term := range terms {
		term = clip.Text(Folded(clip.Text(term, maxTerm)), maxTerm)
		if term == "" {
			continue
		}
		all = append(slices.DeleteFunc(all, func(old string) bool { return old == term }), term)
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

// SearchTerms returns the search terms of the run's thread: the names of its tools, and the titles and targets of its
// actions.
func SearchTerms(tools tool.Set, s *State) (terms []string) {
	for _, a := range s.Actions {
		t := tools[a.Tool]
		if t == nil {
			continue
		}
		terms = append(terms, strings.ReplaceAll(a.Tool, "_", " "), ActionTitle(tools, a))
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
	texts := append([]string{Folded(t.Title)}, t.Terms...)
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
