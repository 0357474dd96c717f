package demomodel

import (
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// text is a piece of a prompt. In mask each byte of a quotation is replaced, so that patterns match only the words
// outside, at the same positions.
type text struct{ raw, mask string }

// hidden replaces a quoted byte in a mask.
const hidden = '\x01'

// quotation matches quoted words. A single straight quote opens only after white space, and closes only before a
// character that is not a letter, so that apostrophes do not match.
var quotation = lazyregexp.New(
	"`([^`]*)`|" + `"([^"]*)"|“([^”]*)”|„([^“”]*)[“”]|«([^»]*)»|‘([^’]*)’|(?:^|[\s(:])'([^']+(?:'\w[^']*)*)'`)

// read returns the text of a prompt, without the question mark of "could you …?", which is no part of the request.
func read(s string) text {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "?"))
	if courteous.MatchString(s) {
		s = strings.TrimSuffix(s, "?")
	}
	mask := []byte(s)
	for _, m := range quotation.FindAllStringSubmatchIndex(s, -1) {
		for g := 2; g < len(m); g += 2 {
			for i := m[g]; i >= 0 && i < m[g+1]; i++ {
				mask[i] = hidden
			}
		}
	}
	return text{s, string(mask)}
}

var courteous = lazyregexp.New(`(?i)^\W*(?:(?:hi|hello|hey|dear\s+assistant)\b\W*)?(?:can|could|would|will|` +
	`shall|may)\s+(?:you|we)\b`)

func (t text) slice(from, to int) text { return text{t.raw[from:to], t.mask[from:to]} }

func (t text) from(at int) text { return t.slice(at, len(t.raw)) }

// near returns the beginning of the text, up to the last word that a word at its start can refer to.
func (t text) near() text { return t.slice(0, min(160, len(t.mask))) }

func (t text) and(u text) text {
	if t.raw == "" {
		return u
	}
	return text{t.raw + ", " + u.raw, t.mask + ", " + u.mask}
}

func (t text) join(u text) text { return text{t.raw + u.raw, t.mask + u.mask} }

// trim drops white space and connecting punctuation at both ends.
func (t text) trim() text {
	const signs = " \t\r\n,;:–—-"
	start := len(t.mask) - len(strings.TrimLeft(t.mask, signs))
	end := len(strings.TrimRight(t.mask, signs))
	if end <= start {
		return text{}
	}
	return t.slice(start, end)
}

// quoted returns the first quotation's words.
func (t text) quoted() (string, bool) {
	at := strings.IndexByte(t.mask, hidden)
	if at < 0 {
		return "", false
	}
	end := len(t.mask) - len(strings.TrimLeft(t.mask[at:], string(rune(hidden))))
	return strings.TrimSpace(t.raw[at:end]), true
}

// unquoted returns the words outside quotations.
func (t text) unquoted() string {
	return oneSpace(strings.Map(func(r rune) rune {
		if r == hidden || strings.ContainsRune("\"'`“”„«»‘’", r) {
			return -1
		}
		return r
	}, t.mask))
}

// plain returns the words of the text, without the quotation marks if it is one quotation.
func (t text) plain() string {
	t = t.trim()
	if q, ok := t.quoted(); ok && strings.Trim(t.mask, "\x01\"'`“”„«»‘’ .") == "" {
		return q
	}
	return t.raw
}

// blank overwrites a span, so that it does not match again.
func (t text) blank(from, to int) text {
	spaces := strings.Repeat(" ", to-from)
	return text{t.raw[:from] + spaces + t.raw[to:], t.mask[:from] + spaces + t.mask[to:]}
}

// without returns the text with everything that matches overwritten.
func (t text) without(re *lazyregexp.Regexp) text {
	for _, m := range re.FindAllStringIndex(t.mask, -1) {
		t = t.blank(m[0], m[1])
	}
	return t
}

// left returns the text that is not blanked, with single spaces.
func (t text) left() string { return oneSpace(t.raw) }

func oneSpace(s string) string { return strings.Join(strings.Fields(s), " ") }

// oneAddress matches a possible address; the tool decides whether it is one.
const (
	oneAddress = `[^\s<>,;:"'()\x01]+@[^\s<>,;:"'()\x01]*[^\s<>,;:"'()\x01.!?]`
	oneReader  = `(?:(?:\pL[\pL'’.-]*\s+){1,4}(?:<` + oneAddress + `>|\(` + oneAddress + `\))|` +
		`<?` + oneAddress + `>?)` // “Ana Garcia <ana@example.com>”, “Ana (ana@example.com)”
	addressList = oneReader + `(?:\s*(?:,\s*and\s|,|;|&|\band\b|\bplus\b)\s*` + oneReader + `)*`
)

var anAddress = lazyregexp.New(oneAddress)

// addresses returns all addresses outside quotations.
func (t text) addresses() []string { return anAddress.FindAllString(t.mask, -1) }

// capitalise makes the first letter upper case.
func capitalise(s string) string {
	if s == "" {
		return s
	}
	r := []rune(s)
	return strings.ToUpper(string(r[0])) + string(r[1:])
}

// excerpt returns one line of limited length, cut between words.
func excerpt(s string, most int) string {
	r := []rune(oneSpace(s))
	if len(r) <= most {
		return string(r)
	}
	cut := string(r[:most-1])
	if at := strings.LastIndexByte(cut, ' '); at > most/2 {
		cut = cut[:at+1]
	}
	return cut + "…"
}

func join(a, b string) string { return strings.TrimSpace(a + " " + b) }
