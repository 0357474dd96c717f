package visible

import (
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
	"golang.org/x/text/unicode/norm"

	"github.com/countersign-run/countersign/shared/lazyregexp"
)

// Within a scheme URL parsers drop tabs and line feeds, and behind it they take slashes of either kind, in any number
// (WHATWG URL, special schemes).
const (
	gap     = `[\t\r\n]*`
	http    = `h` + gap + `t` + gap + `t` + gap + `p(?:` + gap + `s)?`
	ftp     = `f` + gap + `t` + gap + `p`
	ws      = `w` + gap + `s(?:` + gap + `s)?`
	further = `[^\s<>"\x60]`
)

// special finds what begins with a scheme of the web.
const special = `\b(?:` + http + `|` + ftp + `|` + ws + `)` + gap + `:(?:` + gap + `[/\\]` + further + `+|\t*` + further + `+)`

var (
	// absolute finds what is a link wherever it stands: one with a scheme, or one that begins with // or with www.
	absolute = lazyregexp.New(`(?i)` + special + `|(?:\b[a-z][a-z0-9+.-]{1,20}:)?//` + further + `+|\\\\[a-z0-9.-]{2,}\\\w` +
		further + `*|\bwww\.` + further + `+|\b(?:mailto|xmpp|tel|sms|callto|facetime|sips?|javascript|vbscript|magnet|` +
		`webcal|view-source|intent|skype):` + further + `+|\bdata:[^\s<>"\x60]*[;,]` + further + `*`)
	// name finds what may be the name of a host without a scheme, with what follows in the same address. Whether it is
	// one its suffix says.
	name = lazyregexp.New(`(?:^|[^\p{L}\p{N}/\\@])((?:[\p{L}\p{N}](?:[\p{L}\p{N}_-]*[\p{L}\p{N}])?\.)+` +
		`(?:xn--[a-zA-Z0-9-]+|[\p{L}\p{N}]+))(:[0-9]{1,5})?(\.?[/?#]` + further + `*)?`)
	// inline and reference find the targets of Markdown's links, a relative one too.
	inline    = lazyregexp.New(`\]\(\s*<?\s*([^)\s<>]+)`)
	reference = lazyregexp.New(`(?m)^[ >]{0,8}\[[^\]\n]+\]:[ \t]*\n?[ \t]*<?([^\s<>]+)`)
)

// tail has the characters that end a sentence or a form of Markdown and no link.
const tail = `.,;:!?*_~'")]}|`

// alsoFiles are the public suffixes that are the ends of files' names, or members of values in code. A name of two
// labels with such an end is a link only with a path, as in docs.rs/serde.
const alsoFiles = " ac ad am as bar build cab call cat cc foo gd id in la md mk ml mm mo mov name now " +
	"open pl pm ps py rs re run save sc sh so st style sv target tf zip "

// Targets returns the addresses in a text that a reader, or a program that shows the text, would follow, and the text
// without them: with a scheme, whatever stands behind it; names of hosts with a known public suffix; addresses of IP
// with a path or a port; targets of Markdown's links that lead out of where they stand.
func Targets(text string) (found []string, rest string) {
	found, rest = targetsIn(text)
	if folded := foldedDots(text); folded != text {
		more, _ := targetsIn(folded)
		for _, t := range more {
			if !slices.Contains(found, t) {
				found = append(found, t)
			}
		}
	}
	return found, rest
}

// foldedDots returns a text with the full stops, colons and slashes of other scripts as URL parsers read them.
func foldedDots(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x2024 && r <= 0x2026 || r == '。' || r > 0xff00 }) {
		return text
	}
	return strings.ReplaceAll(norm.NFKC.String(text), "。", ".")
}

func targetsIn(text string) (found []string, rest string) {
	if !strings.ContainsAny(text, ".:/\\") {
		return nil, text
	}
	for _, m := range inline.FindAllStringSubmatch(text, -1) {
		found = appendIf(found, m[1], leadsOut(m[1]))
	}
	if strings.Contains(text, "]:") {
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			found = appendIf(found, m[1], leadsOut(m[1]))
		}
	}
	if strings.ContainsAny(text, ":/\\") || strings.Contains(strings.ToLower(text), "www.") {
		for _, l := range absolute.FindAllString(text, -1) {
			found = appendIf(found, strings.TrimRight(l, tail), true)
		}
		text = absolute.ReplaceAllString(text, " ")
	}
	var b strings.Builder
	last := 0
	for _, at := range name.FindAllStringSubmatchIndex(text, -1) {
		sub := func(i int) string {
			if at[2*i] < 0 {
				return ""
			}
			return text[at[2*i]:at[2*i+1]]
		}
		if isHost(sub(1), sub(2), sub(3)) && !strings.HasPrefix(text[at[1]:], "@") {
			found = append(found, strings.TrimRight(text[at[2]:at[1]], tail))
			b.WriteString(text[last:at[2]] + " ")
			last = at[1]
		}
	}
	return found, b.String() + text[last:]
}

func appendIf(all []string, s string, is bool) []string {
	if is && s != "" {
		return append(all, s)
	}
	return all
}

// leadsOut reports whether a relative address leads out of where it stands: to the root of the host, or upwards.
func leadsOut(target string) bool {
	return strings.HasPrefix(target, "/") || strings.HasPrefix(target, `\`) || strings.Contains(target, "..")
}

// isHost reports whether a name with this port and path is read as an address.
func isHost(host, port, path string) bool {
	labels := strings.Split(strings.ToLower(host), ".")
	end := labels[len(labels)-1]
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Is4() && (port != "" || strings.HasPrefix(path, "/"))
	}
	suffix, known := publicsuffix.PublicSuffix(ascii(labels))
	switch {
	case !known && !strings.Contains(suffix, "."), len(strings.Split(suffix, ".")) == len(labels):
		return false
	case path != "" && !strings.HasPrefix(path, "#"):
		return true
	case strings.Contains(alsoFiles, " "+end+" ") && (len(labels) == 2 || len(labels[len(labels)-2]) == 1):
		return false // run.sh, config.h.in
	}
	return len(end) != 2 || strings.ContainsFunc(strings.Join(labels[:len(labels)-1], ""), unicode.IsLetter)
}

// ascii returns a name as the list of public suffixes has it.
func ascii(labels []string) string {
	name := strings.Join(labels, ".")
	if a, err := idna.ToASCII(name); err == nil {
		return a
	}
	return name
}
