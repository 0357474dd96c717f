package demomodel

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// text is a piece of a prompt. In mask each byte of a quotation is replaced, so that patterns match only the words
// outside, at the same positions.
type text struct{ raw, mask string }

// hidden replaces a quoted byte in a mask.
const hidden = '\x01'

// quotation matches quoted words. A single straight quote opens only after white space, and closes only before a
// character that is not a letter, so that apostrophes do not match.
var quotation = regexp.MustCompile(
	`"([^"]*)"|“([^”]*)”|„([^“”]*)[“”]|«([^»]*)»|‘([^’]*)’|(?:^|[\s(:])'([^']+(?:'\w[^']*)*)'`)

// maxPrompt is the longest prompt that is parsed, in bytes. A longer one is not parsed at all: a truncated mail would
// be worse than none.
const maxPrompt = 8 << 10

func read(s string) text {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "?"))
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

func (t text) slice(from, to int) text { return text{t.raw[from:to], t.mask[from:to]} }

func (t text) from(at int) text { return t.slice(at, len(t.raw)) }

// near returns the beginning of the text, as far as a word at its start can refer to.
func (t text) near() text {
	const reach = 160
	return t.slice(0, min(reach, len(t.mask)))
}

// tail returns the end of s, as far as it can directly precede a word.
func tail(s string) string {
	const reach = 40
	return s[max(0, len(s)-reach):]
}

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
	return strings.TrimSpace(t.raw[at : at+t.hiddenAt(at)]), true
}

// quotationAt returns the quotation whose opening mark is at the position, and where its closing mark ends.
func (t text) quotationAt(at int) (words string, end int, ok bool) {
	_, mark := utf8.DecodeRuneInString(t.mask[at:])
	n := t.hiddenAt(at + mark)
	if n == 0 {
		return "", at, false
	}
	end = at + mark + n
	_, mark = utf8.DecodeRuneInString(t.mask[end:])
	return strings.TrimSpace(t.raw[end-n : end]), end + mark, true
}

// hiddenAt returns the number of quoted bytes at the position.
func (t text) hiddenAt(at int) int {
	if at > len(t.mask) {
		return 0
	}
	return len(t.mask[at:]) - len(strings.TrimLeft(t.mask[at:], string(rune(hidden))))
}

// blank overwrites a span of the mask, so that it does not match again.
func (t text) blank(from, to int) text {
	t.mask = t.mask[:from] + strings.Repeat(" ", to-from) + t.mask[to:]
	return t
}

// left returns the text that is not blanked, with single spaces.
func (t text) left() string {
	var b strings.Builder
	for i := 0; i < len(t.mask); i++ {
		switch {
		case t.mask[i] == hidden:
			b.WriteByte(t.raw[i])
		default:
			b.WriteByte(t.mask[i])
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// addressLike matches what may be meant as an address; the tool decides whether it is one.
const addressLike = `[^\s<>,;:"'()\x01]+@[^\s<>,;:"'()\x01]*[^\s<>,;:"'()\x01.!?]`

var (
	anAddress = regexp.MustCompile(addressLike)
	// addressRun matches a list of addresses at the beginning.
	addressRun = regexp.MustCompile(`(?i)^\s*<?` + addressLike +
		`>?(?:\s*(?:,\s*and\s|,|;|&|\band\b|\bplus\b)\s*<?` + addressLike + `>?)*`)
)

// addresses returns all addresses outside quotations.
func (t text) addresses() []string { return anAddress.FindAllString(t.mask, -1) }

// capitalise makes the first letter of plain words upper case.
func capitalise(s string) string {
	if s == "" {
		return s
	}
	r := []rune(s)
	return strings.ToUpper(string(r[0])) + string(r[1:])
}
