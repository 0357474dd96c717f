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

// Compose adds what the model itself wrote: its words, and the arguments of its calls. An address that is made of them
// is the model's, whichever tool returns it afterwards.
func (r *Record) Compose(words string) {
	r.wrote += len(words)
	if r.wrote <= MaxRead {
		r.composed = append(r.composed, &composition{after: len(r.read), spell: sync.OnceValue(func() spelling {
			return spell(words)
		})})
	}
}

// composition is what the model wrote in one answer.
type composition struct {
	after int // the number of sources that were read before it
	spell func() spelling
}

// spelling is a text in every way that it can be read: as it stands, and with what is encoded in it decoded.
type spelling struct {
	text   string // normalised, in lines
	joined string // only its letters and digits
}

func spell(words string) spelling {
	all := []string{words}
	all = append(all, decodings(words, leastWord)...)
	for i := range all {
		all[i] = Normalize(all[i])
	}
	text := strings.Join(all, "\n")
	return spelling{text, lettersOf(text)}
}

// lettersOf returns the letters and digits of a text.
func lettersOf(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			return r
		}
		return -1
	}, s)
}

// Composed reports whether the model made the address up: it stands, whole, neither in own words nor in what was read,
// or only in a source that may have it from the model. To ask for such an address can carry data out.
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

// maxKnown bounds the addresses that [Record.Known] returns.
const maxKnown = 50

// Known returns the addresses in the model's words that it has not made up, as [Record.Composed] has it.
func (r *Record) Known(words string) (known []string) {
	found, _ := visible.Targets(words)
	for _, a := range found {
		if len(known) < maxKnown && strings.Contains(a, "://") && !slices.Contains(known, a) && !r.Composed(a) {
			known = append(known, a)
		}
	}
	return known
}

// addresses returns the part of a source whose addresses the source itself has.
func (s source) addresses() string {
	if s.Echo {
		return s.Found
	}
	return s.Text
}

// derived reports whether an address may be made of what the model had written before the address was read.
func (r *Record) derived(address string, before []*composition) bool {
	if len(before) == 0 {
		return false
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return true
	}
	if assembled(lettersOf(Normalize(u.Host+u.Path+u.RawQuery)), before) {
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
	}
	return false
}

// hostForms returns how an address's host may be written.
func hostForms(u *url.URL) []string {
	host := strings.ToLower(u.Hostname())
	forms := []string{host}
	if shown, err := idna.ToUnicode(host); err == nil && shown != host {
		forms = append(forms, shown)
	}
	return forms
}

// leastJoined is the number of letters from which on a name is looked for without what stands between its letters.
const leastJoined = 6

// names reports whether the model has written the host.
func (c *composition) names(hosts []string) bool {
	s := c.spell()
	return slices.ContainsFunc(hosts, func(h string) bool {
		joined := lettersOf(h)
		return whole(s.text, h, wordEnds) || len(joined) >= leastJoined && strings.Contains(s.joined, joined)
	})
}

// knew reports whether own words, or one of the first sources, have an address on the host with the part; without one,
// whether they have the host.
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

// addressHas reports whether the text has the host, and behind it in the same address the part.
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

// addressIn returns how far an address goes on at the beginning of a text.
func addressIn(text string) string {
	if end := strings.IndexAny(text, " \n<>\"'\x60)]}|"); end >= 0 {
		return text[:end]
	}
	return text
}

// began reports whether the model has written the beginning of the address, further than its host, and nothing that was
// known then begins so.
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

// leastPiece is the number of letters that a piece has at least from which an address is put together.
const leastPiece = 5

// assembled reports whether an address, of which the letters are given, is put together from pieces of what the model
// wrote, in whichever order and with whatever stands between them.
func assembled(letters string, before []*composition) bool {
	piece := func(s string) bool {
		return slices.ContainsFunc(before, func(c *composition) bool { return strings.Contains(c.spell().joined, s) })
	}
	for at := 0; at < len(letters); {
		from := max(0, min(at, len(letters)-leastPiece)) // the last piece may overlap the one before
		to := min(len(letters), from+leastPiece)
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

// part is what of an address may carry data: a label of its host, a segment of its path, what its query has.
type part struct {
	text    string   // normalised
	forms   []string // that, and what may be encoded in it
	segment bool     // of the path, where ordinary words are ordinary
}

// partsOf returns the parts of an address that are long enough to tell something.
func partsOf(u *url.URL) (all []part) {
	add := func(s string, segment bool) {
		p := part{text: Normalize(s), segment: segment}
		for _, form := range append([]string{s}, decodings(s, leastWord)...) {
			p.forms = append(p.forms, Normalize(form))
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
	for _, s := range strings.Split(u.Path, "/") {
		add(s, true)
	}
	for _, pair := range strings.FieldsFunc(u.RawQuery, func(r rune) bool { return strings.ContainsRune("&;=", r) }) {
		if plain, err := url.QueryUnescape(pair); err == nil {
			pair = plain
		}
		add(pair, false)
	}
	add(u.Fragment, false)
	return all
}

// standsIn reports whether the model has written the part. Where it has not written the host too, only what is no
// ordinary word of a path counts: a search for words finds addresses that have these.
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
		}
	}
	return false
}

// unusual reports whether a segment of a path is neither a word, nor a number, nor several of them.
func unusual(segment string) bool {
	words := strings.FieldsFunc(segment, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	return slices.ContainsFunc(words, func(w string) bool {
		letter, number := strings.ContainsFunc(w, unicode.IsLetter), strings.ContainsFunc(w, unicode.IsNumber)
		return len(w) >= 24 || len(w) >= 6 && letter && number
	})
}

// writtenAs returns the forms in which an address is written: as it is, and without the slash that stands for no path.
func writtenAs(address string) []string {
	forms := []string{address}
	if u, err := url.Parse(address); err == nil && u.Path == "/" && u.RawQuery == "" {
		forms = append(forms, strings.TrimSuffix(address, "/"))
	}
	return forms
}
