// Package taint tells which calls carry what strangers wrote. It is pure: a [Record] is given what a run's user said
// (its own words) and what the run has read (untrusted text with its origin), and judges calls. A tainted call is asked
// about, whatever was allowed in advance, and its card names the origin.
//
// It stops text and addresses, not meaning: a paraphrase without a link or a name, in what was allowed, is not seen.
package taint

import (
	"iter"
	"slices"
	"strings"
)

// Limits.
const (
	MaxRead   = 4 << 20 // bytes of untrusted text in all; once there was more, every call is tainted
	Shared    = 32      // characters in a row, normalised, that make a text another's
	maxQuoted = 500     // bytes of a finding's text
)

// Reason says why a call is tainted.
type Reason string

// The reasons.
const (
	Target  Reason = "target"  // what it reaches is not in own words
	Mention Reason = "mention" // its text has a link, an address, a mention or a repository that is not in own words
	Copied  Reason = "copied"  // its text has what was read
	Leaking Reason = "leaking" // it reaches what is public, and something private was read
	TooMuch Reason = "too_much"
)

// Finding is one reason why a call is tainted.
type Finding struct {
	Reason Reason
	Origin string // where the text was read; empty where nothing that was read has it: the model made it up
	Text   string // what was found: a target, a mention, or what is shared, normalised and at most 500 bytes of it
}

// Source is text that was read.
type Source struct {
	Origin string // as the card names it: issue 3 of acme/web, https://example.com/
	Text   string
	// Repository is set where the text is a file of that repository (a URL without a slash at its end): a call into the
	// same repository may have it.
	Repository string
	Files      []string // with Repository: the paths of the files that the text shows
	Private    bool     // not everybody can read it
	// Echo is set where the text may say what the model wrote, as that of a program does: of its addresses only those
	// in Found count as read.
	Echo  bool
	Found string
}

// Call is what is judged of a call.
type Call struct {
	Targets    []string // the values of its target fields: owner, repository, labels
	Text       []string // its free text, all fields in the schema's order
	Repository string   // where it acts, as in Source; empty: in none
	Files      []string // the paths of the files there that it replaces
	Public     bool     // everybody can read what it makes
}

// Record is what was said and read in a run. It is not safe for concurrent use.
type Record struct {
	own      []text
	read     []source
	size     int
	private  string // the origin of the first private source
	composed []*composition
	wrote    int // bytes that the model wrote
}

type source struct {
	Source
	text
	composed int // the number of compositions before it
}

// text is a text as it was written, normalised, and without what hides it, which is made when it is needed.
type text struct {
	raw, normal string
	without     *string
	marks       marks // of without, for own words and what is judged
}

func newText(s string) text { return text{raw: s, normal: Normalize(s)} }

func (t *text) hidden() string {
	if t.without == nil {
		s := disguised(t.raw, t.normal, nil)
		t.without = &s
	}
	return *t.without
}

// marked returns hidden with its marks.
func (t *text) marked() (string, marks) {
	if t.marks == nil {
		t.marks = marks{}
		s := disguised(t.raw, t.normal, &t.marks)
		t.without = &s
	}
	return *t.without, t.marks
}

// Say adds the user's own words: a prompt, a refinement, an edit, a confirmed plan.
func (r *Record) Say(words string) { r.own = append(r.own, newText(words)) }

// Read adds untrusted text. What is beyond [MaxRead] is not kept.
func (r *Record) Read(s Source) {
	if r.size += len(s.Text); r.size <= MaxRead {
		r.read = append(r.read, source{s, newText(s.Text), len(r.composed)})
	}
	if s.Private && r.private == "" {
		r.private = s.Origin
	}
}

// Judge returns why the call is tainted, or nothing if it is not.
func (r *Record) Judge(c Call) (found []Finding) {
	if r.size > MaxRead {
		found = append(found, Finding{Reason: TooMuch})
	}
	if c.Public && r.private != "" {
		found = append(found, Finding{Reason: Leaking, Origin: r.private})
	}
	for _, t := range c.Targets {
		if n := Normalize(t); n != "" && !r.said(n, wordEnds) {
			found = append(found, Finding{Target, r.origin(n, wordEnds), quote(t)})
		}
	}
	joined := strings.Join(c.Text, "\n")
	for _, m := range mentions(joined) {
		if !m.into(c.Repository) && !r.saidIn(m.forms(), m.ends) && !r.stoodThere(m, c) {
			found = append(found, Finding{Mention, r.origin(m.text, m.ends), quote(m.text)})
		}
	}
	return append(found, r.copied(joined, c.Repository)...)
}

// said reports whether own words have the token whole.
func (r *Record) said(token string, ends boundary) bool {
	for _, t := range r.own {
		if whole(t.form(ends), token, ends) {
			return true
		}
	}
	return false
}

// stoodThere reports whether a file that the call replaces had the mention before. What closes an issue acts only now.
func (r *Record) stoodThere(m mention, c Call) bool {
	return len(c.Files) > 0 && !m.closes() && slices.ContainsFunc(r.read, func(s source) bool {
		return s.Repository == c.Repository && whole(s.form(m.ends), m.text, m.ends) &&
			slices.ContainsFunc(s.Files, func(f string) bool { return slices.Contains(c.Files, f) })
	})
}

// saidIn reports whether own words have one of the tokens whole.
func (r *Record) saidIn(forms []string, ends boundary) bool {
	return slices.ContainsFunc(forms, func(f string) bool { return r.said(f, ends) })
}

// origin returns where the token was read, or nothing.
func (r *Record) origin(token string, ends boundary) string {
	for _, s := range r.read {
		if whole(s.form(ends), token, ends) {
			return s.Origin
		}
	}
	return ""
}

// form returns the text as tokens of the kind are looked for in it: links as they are written, since their letters'
// case may carry data, and all else normalised.
func (t text) form(ends boundary) string {
	if ends == linkEnds {
		return t.raw
	}
	return t.normal
}

// copied returns what the text shares with each source, and not with own words: as it stands, or without what hides
// it.
func (r *Record) copied(raw, repository string) (found []Finding) {
	if len(r.read) == 0 {
		return nil
	}
	t := newText(raw)
	letters, of := t.marked()
	plain, hidden := newWindows(t.normal), newWindows(letters)
	hidden.marks = of
	for i := range r.own {
		plain.forget(" "+r.own[i].normal+" ", nil) // as it stands among other words
		hidden.forget(r.own[i].marked())
	}
	for i := range r.read {
		s := &r.read[i]
		if s.Repository != "" && s.Repository == repository {
			continue
		}
		shared := plain.in(s.normal)
		if shared == "" && hidden.present > 0 {
			shared = r.disguisedIn(hidden, s.hidden())
		}
		if shared != "" {
			found = append(found, Finding{Copied, s.Origin, quote(shared)})
		}
	}
	return found
}

// neighbours is how many letters of other words may stand beside one of the user's own words in a stretch without
// spaces, which an own link nearly fills. They change nothing of the user's: they are fewer than 8, have no digit, and
// the own word stands there whole, without a space in it.
const neighbours = 8

// disguisedIn returns the first stretch that both texts share, and that is more than an own word with its neighbours.
func (r *Record) disguisedIn(hidden *windows, source string) string {
	for {
		shared := hidden.in(source)
		if shared == "" || !r.nearlyOwn(hidden, shared) {
			return shared
		}
		hidden.forgetText(shared)
	}
}

// nearlyOwn reports whether the stretch is an own word and fewer than [neighbours] letters, wherever the text has it.
func (r *Record) nearlyOwn(hidden *windows, shared string) bool {
	for at := range places(hidden.text, shared) {
		if !r.besideOwn(shared, hidden.marks[at:]) {
			return false
		}
	}
	return true
}

// besideOwn reports whether the stretch, which has these marks, is an own word and fewer than [neighbours] letters.
func (r *Record) besideOwn(shared string, of marks) bool {
	for head := range neighbours {
		for tail := range neighbours - head {
			end := len(shared) - tail // a shared stretch has at least Shared letters
			if !of[:head].noDigit() || !of[end:len(shared)].noDigit() ||
				!of.apart(head) || !of.apart(end) {
				continue
			}
			if r.ownWord(shared[head:end], of[head:end]) {
				return true
			}
		}
	}
	return false
}

// ownWord reports whether the part is one whole own word, with the same digits.
func (r *Record) ownWord(part string, of marks) bool {
	for i := range r.own {
		own, marks := r.own[i].marked()
		for at := range places(own, part) {
			end := at + len(part)
			if sameDigits(marks[at:end], of) && marks.apart(at) && marks.apart(end) && !marks.hasSpace(at, end) {
				return true
			}
		}
	}
	return false
}

// places yields where the text has the part.
func places(text, part string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for from := 0; ; from++ {
			at := strings.Index(text[from:], part)
			if at < 0 || !yield(from+at) {
				return
			}
			from += at
		}
	}
}
