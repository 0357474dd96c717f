package taint

import (
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/net/idna"

	"github.com/countersign-run/countersign/shared/base/visible"
)

// Compose adds text that the model wrote: its words, and the arguments of its calls. An address made of this text
// counts as the model's, even if a tool returns it later.
func (r *Record) Compose(words string) {
	r.wrote += len(words)
	if r.wrote <= MaxRead {
		r.composed = append(r.composed, &composition{after: len(r.read), spell: sync.OnceValue(func() spelling {
			return spell(words)
		})})
	}
}

// composition is the text that the model wrote in one answer.
type composition struct {
	after int // number of sources that were read before it
	spell func() spelling
}

// Composed reports whether the model made the address up. It is false if the whole address is in the user's words, or
// in text that was read and cannot come from the model. A request for a made-up address can carry data out.
func (r *Record) Composed(address string) bool {
	forms := writtenAs(address)
	for _, form := range forms {
		if r.said(form, linkEnds) {
			return false
		}
	}
	if r.wrote > MaxRead {
		return true
	}
	for _, s := range r.read {
		for _, form := range forms {
			if whole(s.addresses(), form, linkEnds) && !r.derived(address, r.composed[:s.composed]) {
				return false
			}
		}
	}
	return true
}

// maxKnown is the maximum number of addresses that [Record.Known] returns.
const maxKnown = 50

// Known returns the addresses in the model's words that the model did not make up ([Record.Composed]).
func (r *Record) Known(words string) (known []string) {
	found, _ := visible.Targets(words)
	for _, a := range found {
		if len(known) < maxKnown && strings.Contains(a, "://") && !slices.Contains(known, a) && !r.Composed(a) {
			known = append(known, a)
		}
	}
	return known
}

// addresses returns the part of a source whose addresses count as read.
func (s source) addresses() string {
	if s.Echo {
		return s.Found
	}
	return s.Text
}

// derived reports whether the model may have built the address from text that it had written before the address was
// read.
func (r *Record) derived(address string, before []*composition) bool {
	if len(before) == 0 {
		return false
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return true
	}
	if assembled(lettersOf(Normalize(u.Host+u.Path+u.RawQuery)), leastPiece, before) {
		return true
	}
	hosts, named := hostForms(u), false
	for _, c := range before {
		if !c.names(hosts) {
			continue
		}
		if !r.knew(hosts, "", c.after) || r.began(u, hosts, c) {
			return true
		}
		named = true
	}
	for _, p := range partsOf(u) {
		for _, c := range before {
			if p.standsIn(c.spell(), named) && !r.knew(hosts, p.text, c.after) && (named || !r.said(p.text, wordEnds)) {
				return true
			}
		}
		for word := range strings.FieldsFuncSeq(p.text, isSign) {
			if unusual(word) && len(word) >= leastJoined && assembled(word, leastUnusual, before) &&
				!r.knew(hosts, p.text, before[0].after) {
				return true
			}
		}
	}
	return false
}

// isSign reports whether a character is neither a letter nor a digit.
func isSign(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }

// hostForms returns the ways in which an address's host can be written.
func hostForms(u *url.URL) []string {
	host := strings.ToLower(u.Hostname())
	forms := []string{host}
	if shown, err := idna.ToUnicode(host); err == nil && shown != host {
		forms = append(forms, shown)
	}
	return forms
}

// leastJoined is the minimum length of a host, in letters and digits, for a search that ignores all other characters.
const leastJoined = 6

// names reports whether the model wrote the host in this answer.
func (c *composition) names(hosts []string) bool {
	s := c.spell()
	return slices.ContainsFunc(hosts, func(h string) bool {
		joined := lettersOf(h)
		return whole(s.text, h, wordEnds) || len(joined) >= leastJoined && strings.Contains(s.joined, joined)
	})
}

// knew reports whether the user's words, or one of the first sources, contain an address with the host and the part. An
// empty part matches any address with the host.
func (r *Record) knew(hosts []string, part string, sources int) bool {
	for _, t := range r.own {
		if addressHas(t.normal, hosts, part) {
			return true
		}
	}
	return slices.ContainsFunc(r.read[:sources], func(s source) bool {
		text := s.normal
		if s.Echo {
			text = Normalize(s.Found)
		}
		return addressHas(text, hosts, part)
	})
}

// addressHas reports whether the text contains an address with one of the hosts, followed by the part.
func addressHas(text string, hosts []string, part string) bool {
	for _, h := range hosts {
		for from := 0; ; {
			at := strings.Index(text[from:], h)
			if at < 0 {
				break
			}
			at += from
			from = at + len(h)
			stands := begins(text[:at], wordEnds) && ended(text[from:], wordEnds)
			if stands && strings.Contains(addressIn(text[from:]), part) {
				return true
			}
		}
	}
	return false
}

// addressIn returns the part of a text up to the end of the address at its beginning.
func addressIn(text string) string {
	if end := strings.IndexAny(text, " \n<>\"'\x60)]}|"); end >= 0 {
		return text[:end]
	}
	return text
}

// began reports whether the model itself made up the beginning of the address, including a part of its path. It did if
// no address that was known at that time begins in the same way.
func (r *Record) began(u *url.URL, hosts []string, c *composition) bool {
	rest := strings.ToLower(strings.TrimPrefix(u.RequestURI(), "/"))
	text := c.spell().text
	for from := 0; ; {
		at := strings.Index(text[from:], hosts[0]+"/")
		if at < 0 {
			return false
		}
		from += at + len(hosts[0]) + 1
		start := strings.TrimRight(addressIn(text[from:]), ".,;:!*_~\\")
		if start != "" && strings.HasPrefix(rest, start) && !r.knew(hosts, "/"+start, c.after) {
			return true
		}
	}
}

// leastPiece is the minimum length of the pieces that an address can be assembled from, in letters and digits.
const leastPiece = 5

// leastUnusual is that length for a word of letters and digits.
const leastUnusual = 4

// assembled reports whether an address, given as its letters and digits, consists of pieces that the model wrote, in
// any order and with anything between them.
func assembled(letters string, least int, before []*composition) bool {
	piece := func(s string) bool {
		return slices.ContainsFunc(before, func(c *composition) bool { return strings.Contains(c.spell().joined, s) })
	}
	for at := 0; at < len(letters); {
		from := max(0, min(at, len(letters)-least)) // the last piece may overlap the previous one
		to := min(len(letters), from+least)
		if !piece(letters[from:to]) {
			return false
		}
		for to < len(letters) && piece(letters[from:to+1]) {
			to++
		}
		at = to
	}
	return true
}

// part is a part of an address that can carry data: a label of the host, the port, a segment of the path, a name or
// value of the query, or all segments and values together.
type part struct {
	text    string   // normalised
	forms   []string // text, and what may be encoded in it
	similar []string // those of forms that letterly changes
	segment bool     // a segment of the path, which may be an ordinary word
}

// partsOf returns the parts of an address that are long enough to carry data.
func partsOf(u *url.URL) (all []part) {
	add := func(s string, segment bool) {
		p := part{text: Normalize(s), segment: segment}
		for _, form := range append([]string{s}, decodings(s, leastWord)...) {
			form = Normalize(form)
			p.forms = append(p.forms, form)
			if plain := latin(form); plain != form {
				p.forms = append(p.forms, plain)
			}
			if similar := letterly(latin(form)); similar != form {
				p.similar = append(p.similar, similar)
			}
		}
		if len(lettersOf(p.text)) >= 3 {
			all = append(all, p)
		}
	}
	labels := strings.Split(u.Hostname(), ".")
	for _, l := range labels[:max(0, len(labels)-2)] {
		if l != "www" {
			add(l, false)
		}
	}
	add(u.Port(), false)
	if u.User != nil {
		add(u.User.Username(), false)
		secret, _ := u.User.Password()
		add(secret, false)
	}
	together := strings.Split(strings.Trim(u.Path, "/"), "/")
	for _, s := range together {
		add(s, true)
	}
	for _, pair := range strings.FieldsFunc(u.RawQuery, func(r rune) bool { return r == '&' || r == ';' }) {
		for i, s := range strings.Split(pair, "=") {
			if plain, err := url.QueryUnescape(s); err == nil {
				s = plain
			}
			if i > 0 {
				together = append(together, s)
			}
			add(s, false)
		}
	}
	if len(together) > 1 {
		add(strings.Join(together, ""), true)
	}
	add(u.Fragment, false)
	return all
}

// standsIn reports whether the model wrote the part. If it did not also write the host, an ordinary word in a path does
// not count, because a search for words finds addresses that contain them.
func (p part) standsIn(s spelling, named bool) bool {
	for i, form := range p.forms {
		joined := lettersOf(form)
		switch {
		case len(joined) < 3 || !named && len(joined) < 4:
			continue
		case !named && i == 0 && p.segment && !unusual(form):
			continue
		case whole(s.text, form, wordEnds), named && len(joined) >= 8 && strings.Contains(s.joined, joined):
			return true
		case named && hasWordOf(form, joined, s):
			return true
		}
	}
	return named && slices.ContainsFunc(p.similar, func(form string) bool {
		return hasWordOf(form, lettersOf(form), s)
	})
}

// hasWordOf reports whether the model's text contains a word of the part, or the part contains a longer word of that
// text.
func hasWordOf(form, joined string, s spelling) bool {
	for word := range strings.FieldsFuncSeq(form, isSign) {
		if len(word) >= leastUnusual && whole(s.text, word, wordEnds) {
			return true
		}
	}
	for word := range strings.FieldsFuncSeq(s.text, isSign) {
		if len(word) >= leastJoined && strings.Contains(joined, word) {
			return true
		}
	}
	return false
}

// unusual reports whether a segment of a path is more than words and numbers.
func unusual(segment string) bool {
	words := strings.FieldsFunc(segment, isSign)
	return slices.ContainsFunc(words, func(w string) bool {
		letter, number := strings.ContainsFunc(w, unicode.IsLetter), strings.ContainsFunc(w, unicode.IsNumber)
		return len(w) >= 24 || len(w) >= 6 && letter && number
	})
}

// writtenAs returns the ways in which an address can be written: as it is, and without the slash of an empty path.
func writtenAs(address string) []string {
	forms := []string{address}
	if u, err := url.Parse(address); err == nil && u.Path == "/" && u.RawQuery == "" {
		forms = append(forms, strings.TrimSuffix(address, "/"))
	}
	return forms
}
