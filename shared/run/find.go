package run

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/tool"
)

// The bounds of the terms that a thread keeps, in bytes: of one, and of all.
const (
	maxTerm  = 200
	maxTerms = 16 << 10
)

// Folded returns a text as it is searched: without regard to case, accents, and the number and kind of its spaces.
func Folded(text string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(text) {
		if !unicode.Is(unicode.Mn, r) {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// Note keeps what the thread can be found by, each term once and the newest last. The oldest terms are dropped.
func (t *Thread) Note(terms ...string) {
	all := slices.Clone(t.Terms) // not into the array of a copy whose commit failed
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

// SearchTerms returns what the run's thread can be found by: its tools, what they are to do, and whom they reach.
func SearchTerms(tools tool.Set, s *State) (terms []string) {
	for _, a := range s.Actions {
		t := tools[a.Tool]
		if t == nil {
			continue
		}
		terms = append(terms, strings.ReplaceAll(a.Tool, "_", " "), ActionTitle(tools, a))
		if targets, err := t.Targets(a.Args); err == nil { // a call that was refused may have none
			for _, at := range targets {
				terms = append(terms, at.Value)
			}
		}
	}
	return terms
}

// Has reports whether each of the folded words stands in the thread's title, its terms, or its user's newest messages.
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

// Ended returns how the thread's newest run has ended, or "" while the run goes on.
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
