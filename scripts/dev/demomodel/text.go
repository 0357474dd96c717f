package demomodel

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// text is a piece of a prompt. In mask each byte of a quotation is replaced, so that patterns look at the words outside
// and positions stay the same.
type text struct{ raw, mask string }

// hidden stands for a quoted byte.
const hidden = '\x01'

// quotation finds quoted words. A single straight quote opens behind white space only, and closes before what is no
// letter, so that apostrophes are none.
var quotation = regexp.MustCompile(`"([^"]*)"|“([^”]*)”|„([^“”]*)[“”]|«([^»]*)»|‘([^’]*)’|(?:^|[\s(:])'([^']+(?:'\w[^']*)*)'`)

// maxPrompt is the longest prompt that is read, in bytes. A longer one is not read at all: a mail that breaks off in the
// middle would be worse than none.
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

// near is the beginning of the text: what a word at its start can refer to.
func (t text) near() text {
	const reach = 160
	return t.slice(0, min(reach, len(t.mask)))
}

// tail is the end of s: what can stand directly before a word.
func tail(s string) string {
	const reach = 40
	return s[max(0, len(s)-reach):]
}

// trim drops white space and connecting signs at both ends.
func (t text) trim() text {
	const signs = " \t\r\n,;:–—-"
	start := len(t.mask) - len(strings.TrimLeft(t.mask, signs))
	end := len(strings.TrimRight(t.mask, signs))
	if end <= start {
		return text{}
	}
	return t.slice(start, end)
}

// quoted gives the first quotation's words.
func (t text) quoted() (string, bool) {
	at := strings.IndexByte(t.mask, hidden)
	if at < 0 {
		return "", false
	}
	return strings.TrimSpace(t.raw[at : at+t.hiddenAt(at)]), true
}

// quotationAt gives the quotation whose opening mark stands at the place, and where its closing mark ends.
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

// hiddenAt is how many quoted bytes stand at the place.
func (t text) hiddenAt(at int) int {
	if at > len(t.mask) {
		return 0
	}
	return len(t.mask[at:]) - len(strings.TrimLeft(t.mask[at:], string(rune(hidden))))
}

// blank overwrites a span of the mask, so that nothing looks at it again.
func (t text) blank(from, to int) text {
	t.mask = t.mask[:from] + strings.Repeat(" ", to-from) + t.mask[to:]
	return t
}

// left is what is not blanked, with single spaces.
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

// addressLike is what may be meant as an address; whether it is one, the tool says.
const addressLike = `[^\s<>,;:"'()\x01]+@[^\s<>,;:"'()\x01]*[^\s<>,;:"'()\x01.!?]`

var (
	anAddress = regexp.MustCompile(addressLike)
	// addressRun is a list of addresses at the beginning.
	addressRun = regexp.MustCompile(`(?i)^\s*<?` + addressLike + `>?(?:\s*(?:,\s*and\s|,|;|&|\band\b|\bplus\b)\s*<?` + addressLike + `>?)*`)
)

// addresses are all that stand outside quotations.
func (t text) addresses() []string { return anAddress.FindAllString(t.mask, -1) }

// capitalise makes the first letter of plain words a capital one.
func capitalise(s string) string {
	if s == "" {
		return s
	}
	r := []rune(s)
	return strings.ToUpper(string(r[0])) + string(r[1:])
}
