// Package taint finds calls that contain text from strangers. It is pure: a [Record] receives the user's words, which
// are trusted input, and the untrusted text that a run has read, with its origin. From these it judges calls. A tainted
// call needs approval whatever the user allowed in advance, and its card names the origin.
//
// The check finds text and addresses, not meaning. It does not find a paraphrase without a link or a name, inside a
// permission of the user.
package taint

import (
	"iter"
	"slices"
	"strings"
)

// Limits of a record and of a finding.
const (
	MaxRead   = 4 << 20 // bytes of untrusted text in total; if a run reads more, every call is tainted
	Shared    = 32      // length of a shared stretch that counts as copied, in normalised characters
	maxQuoted = 500     // bytes of a finding's text
)

// Reason is the cause of a finding.
type Reason string

// The reasons of findings.
const (
	Target  Reason = "target"  // a target of the call is not in the user's words
	Mention Reason = "mention" // the text has a link, address, mention or repository that is not in the user's words
	Copied  Reason = "copied"  // the text contains text that was read
	Leaking Reason = "leaking" // the call publishes something, and the run read something private
	TooMuch Reason = "too_much"
	File    Reason = "file" // the run read a file, whose text is unknown
	Read    Reason = "read" // the run read something, which is enough for a call with an effect on later runs
)

// Finding is one reason that makes a call tainted.
type Finding struct {
	Reason Reason
	Origin string // where the text was read; empty: the model made it up
	Text   string // the target, the mention, or the shared stretch in its normal form; at most 500 bytes
}

// Source is untrusted text that was read.
type Source struct {
	Origin string // as a card names it: issue 3 of acme/web, https://example.com/
	Text   string
	// Repository is the URL of the repository that the text is a file of, without a final slash; otherwise empty. A
	// call that acts on the same repository may contain the text.
	Repository string
	Files      []string // with Repository: paths of the files that the text shows
	Private    bool     // not everyone can read it
	// Echo means that the text may repeat what the model wrote, such as the output of a program. Only the addresses in
	// Found then count as read.
	Echo  bool
	Found string
}

// Call holds the parts of a tool call that the check examines.
type Call struct {
	Targets    []string // values of the target fields: owner, repository, labels
	Text       []string // free text of all fields, in the schema's order
	Repository string   // the repository that the call acts on, as in Source; empty: none
	Files      []string // paths of the repository's files that the call replaces
	Changes    []Change // texts that the call changes
	Public     bool     // everyone can read the result of the call
}

// Change is a text that a call changes. Only Added counts as words of the call.
type Change struct {
	Stood string // text that is there already
	Added string // text that the call adds
}

// Record holds what the user wrote and what the run read. It is not safe for concurrent use.
type Record struct {
	own      []text
	read     []source
	size     int
	private  string // origin of the first private source
	composed []*composition
	wrote    int // bytes that the model wrote
	files    []string
}

type source struct {
	Source
	text
	composed int // number of compositions before the source
}

// text is an original text with its readings. The skeleton with marks is made when it is needed.
type text struct {
	raw string
	*reading
	letters string
	marks   marks // only for the user's words and for judged text
}

func newText(s string) text { return text{raw: s, reading: readingOf(s)} }

// marked returns the skeleton with its marks.
func (t *text) marked() (string, marks) {
	if t.marks == nil {
		t.marks = marks{}
		t.letters = disguised(t.raw, t.normal, &t.marks)
	}
	return t.letters, t.marks
}

// Say adds trusted input: a prompt, a refinement, an edit, a confirmed plan.
func (r *Record) Say(words string) { r.own = append(r.own, newText(words)) }

// Read adds untrusted text. Text beyond [MaxRead] is not stored.
func (r *Record) Read(s Source) {
	if r.size += len(s.Text); r.size <= MaxRead {
		r.read = append(r.read, source{s, newText(s.Text), len(r.composed)})
	}
	if s.Private && r.private == "" {
		r.private = s.Origin
	}
}

// ReadFile adds a file whose text cannot be compared, such as a picture. Every later call is tainted, because it may
// contain the file's text. A file counts as private.
func (r *Record) ReadFile(origin string) {
	r.files = append(r.files, origin)
	if r.private == "" {
		r.private = origin
	}
}

// First returns the origin of the first text or file that was read, or "".
func (r *Record) First() string {
	for _, s := range r.read {
		if s.Text != "" {
			return s.Origin
		}
	}
	switch {
	case len(r.files) > 0:
		return r.files[0]
	case r.size > MaxRead:
		return "more text than is compared"
	}
	return ""
}

// Judge returns the reasons why the call is tainted, or nil if it is not.
func (r *Record) Judge(c Call) (found []Finding) {
	if r.size > MaxRead {
		found = append(found, Finding{Reason: TooMuch})
	}
	for _, f := range r.files {
		found = append(found, Finding{Reason: File, Origin: f})
	}
	if c.Public && r.private != "" {
		found = append(found, Finding{Reason: Leaking, Origin: r.private})
	}
	for _, t := range c.Targets {
		if n := Normalize(t); n != "" && !r.said(n, wordEnds) {
			found = append(found, Finding{Target, r.origin(n, wordEnds), quote(t)})
		}
	}
	joined := c.words()
	for _, m := range mentions(joined) {
		if !m.into(c.Repository) && !r.saidIn(m.forms(), m.ends) && !r.stoodThere(m, c) && !c.keeps(m) {
			found = append(found, Finding{Mention, r.origin(m.text, m.ends), quote(m.text)})
		}
	}
	return append(found, r.copied(joined, c)...)
}

// said reports whether the user's words contain the whole token.
func (r *Record) said(token string, ends boundary) bool {
	for _, t := range r.own {
		if whole(t.form(ends), token, ends) {
			return true
		}
	}
	return false
}

// stoodThere reports whether a file that the call replaces contained the mention already. A reference that closes an
// issue does not count, because it takes effect only now.
func (r *Record) stoodThere(m mention, c Call) bool {
	return len(c.Files) > 0 && !m.closes() && slices.ContainsFunc(r.read, func(s source) bool {
		return s.Repository == c.Repository && whole(s.form(m.ends), m.text, m.ends) &&
			slices.ContainsFunc(s.Files, func(f string) bool { return slices.Contains(c.Files, f) })
	})
}

// saidIn reports whether the user's words contain one of the tokens as a whole.
func (r *Record) saidIn(forms []string, ends boundary) bool {
	return slices.ContainsFunc(forms, func(f string) bool { return r.said(f, ends) })
}

// origin returns the origin of the first source that contains the token, or "".
func (r *Record) origin(token string, ends boundary) string {
	for _, s := range r.read {
		if whole(s.form(ends), token, ends) {
			return s.Origin
		}
	}
	return ""
}

// form returns the form of the text in which tokens of the kind are searched for. Links are searched for in the
// original text, because upper and lower case can carry data. All other tokens are searched for in the normal form.
func (t text) form(ends boundary) string {
	if ends == linkEnds {
		return t.raw
	}
	return t.normal
}

// copied returns a finding for each source that shares a stretch with the text, if the user's words do not contain it.
// It compares the normal forms and the skeletons.
func (r *Record) copied(raw string, c Call) (found []Finding) {
	if len(r.read) == 0 {
		return nil
	}
	t := newText(raw)
	letters, of := t.marked()
	plain, hidden := newWindows(t.normal), newWindows(letters)
	hidden.marks = of
	for i := range r.own {
		plain.forget(" "+r.own[i].normal+" ", nil) // as a part of a longer text
		hidden.forget(r.own[i].marked())
	}
	for _, change := range c.Changes {
		stood := newText(change.Stood)
		plain.forget(" "+stood.normal+" ", nil)
		hidden.forget(stood.marked())
	}
	for i := range r.read {
		s := &r.read[i]
		if s.Repository != "" && s.Repository == c.Repository {
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

// neighbours limits how many letters of other words may be next to one of the user's words in a shared stretch of the
// skeleton. Without it, the user's own link, which is nearly a whole stretch, would count as copied together with the
// next word. Fewer than 8 letters without a digit do not change the meaning of the user's word, which must occur whole
// and without a space in it.
const neighbours = 8

// disguisedIn returns the first stretch of both skeletons that is more than one of the user's words and a few letters,
// or "".
func (r *Record) disguisedIn(hidden *windows, source string) string {
	for {
		shared := hidden.in(source)
		if shared == "" || !r.nearlyOwn(hidden, shared) {
			return shared
		}
		hidden.forgetText(shared)
	}
}

// nearlyOwn reports whether every occurrence of the stretch consists of one of the user's words and fewer than
// [neighbours] other letters.
func (r *Record) nearlyOwn(hidden *windows, shared string) bool {
	for at := range places(hidden.text, shared) {
		if !r.besideOwn(shared, hidden.marks[at:]) {
			return false
		}
	}
	return true
}

// besideOwn reports whether the stretch with these marks consists of one of the user's words and fewer than
// [neighbours] other letters.
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

// ownWord reports whether the part is exactly one of the user's words, with the same digits.
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

// places yields the positions of the part in the text.
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
