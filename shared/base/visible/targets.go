package visible

import (
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
	"golang.org/x/text/unicode/norm"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// URL parsers drop tabs and line feeds within a scheme. After the scheme they accept any number of slashes of either
// kind (WHATWG URL, special schemes).
const (
	gap     = `[\t\r\n]*`
	http    = `h` + gap + `t` + gap + `t` + gap + `p(?:` + gap + `s)?`
	ftp     = `f` + gap + `t` + gap + `p`
	ws      = `w` + gap + `s(?:` + gap + `s)?`
	further = `[^\s<>"\x60]`
)

// special matches an address that begins with a scheme of the web.
const special = `\b(?:` + http + `|` + ftp + `|` + ws + `)` + gap + `:(?:` + gap + `[/\\]` + further + `+|\t*` + further + `+)`

var (
	// absolute matches an address that is a link in any context: with a scheme, or starting with // or www.
	absolute = lazyregexp.New(`(?i)` + special + `|(?:\b[a-z][a-z0-9+.-]{1,20}:)?//` + further + `+|\\\\[a-z0-9._@-]{2,}\\\w` +
		further + `*|\bwww\.` + further + `+|\bfile:[/\\]` + further + `+|\b(?:search-ms|` +
		`ms-(?:word|excel|powerpoint|visio|access|project|msdt|appinstaller|officecmd|settings|search)|itms[a-z-]*|tg|` +
		`whatsapp|zoommtg|msteams|otpauth|bitcoin|ethereum|litecoin|dogecoin|monero|solana|lightning|outlook|onenote|` +
		`s?news|nntp|gopher|telnet|tn3270|wais|ldap|smb|upi|mailto|xmpp|ircs?|aim|ymsgr|gtalk|tel|sms|smsto|mmsto|callto|` +
		`facetime|facetime-audio|imessage|h323|sips?|viber|alipays?|spotify|steam|geo|maps|calshow|vscode(?:-insiders)?|` +
		`(?:cal|card)?davs?|web\+[a-z]+|feed|javascript|vbscript|magnet|` +
		`webcal|view-source|intent|skype):` + further + `+|\bdata:[^\s<>"\x60]*[;,]` + further + `*`)
	// name matches a possible host name without a scheme, and the rest of its address. isHost checks the suffix.
	name = lazyregexp.New(`(?:^|[^\p{L}\p{N}/\\@])((?:[\p{L}\p{N}](?:[\p{L}\p{N}_-]*[\p{L}\p{N}])?\.)+` +
		`(?:xn--[a-zA-Z0-9-]+|[\p{L}\p{N}]+))(:[0-9]{1,5})?(\.?[/?#]` + further + `*)?`)
	// inline and reference match the targets of Markdown links, including relative ones.
	inline    = lazyregexp.New(`\]\(\s*(?:<([^<>\n]+)>|<?\s*([^)\s<>]+))`)
	reference = lazyregexp.New(`(?m)^(?:[ \t>*+-]|[0-9]{1,9}[.)][ \t])*\[(?:[^\[\]\\]|\\.)+\]:[ \t]*\n?[ \t>]*<?([^\s<>]+)`)
	// automatic matches an autolink of Markdown, with any scheme.
	automatic = lazyregexp.New(`<([a-zA-Z][a-zA-Z0-9+.-]{1,31}:[^\s<>]+)>`)
	scheme    = lazyregexp.New(`^(?i:[a-z][a-z0-9+.-]+:)[^:]`)
	encoded   = lazyregexp.New(`(?i)%2e`)
)

// tail lists the characters that end a sentence or a Markdown form, not a link.
const tail = `.,;:!?*_~'")]}|`

// alsoFiles lists the public suffixes that are also usual file extensions, or names of members in code. A name of two
// labels with such a suffix is a link only if a path follows, as in docs.rs/serde. Some mail programs make a link of
// report.zip, too; most texts mean the file.
const alsoFiles = " bar build cab call cat foo gd md mk mm mov name now open pm ps py rs run save sh so style target " +
	"tf zip "

// countries lists the public suffixes of countries that are seldom file extensions or members in code. A name of two
// labels with such a suffix is a link unless [usualStem] matches it, as in Makefile.am, user.id and main.cc.
const countries = " ac ad am as cc id in la ml mo pl re sc st sv "

// usualStem matches usual names of files and objects, and names that no host can have.
var usualStem = lazyregexp.New(`(?i)^(?:makefile|makevars|config|configure|manifest|requirements?|setup|install|build|` +
	`run|main|index|tests?|scripts?|lib[a-z0-9-]*|utils?|helpers?|common|base|core|types?|parser|lexer|server|client|` +
	`messages?|django|aclocal|this|self|it|me|obj|object|item|items|user|users|order|account|customer|contact|product|` +
	`project|repo|team|task|issue|ticket|event|node|data|row|record|request|req|response|res|result|session|file|doc|` +
	`document|element|elem|el|app|ctx|context|model|page|post|comment|group|role|token|key|job|parent|child|root|` +
	`device|host|thread|action|approval|container|tool|msg|options?|header|markdown|foo|bar|baz)$|_`).MatchString

// Targets returns the addresses in a text that a reader, or a program that displays the text, would follow. rest is the
// text without them. It finds anything with a scheme, host names with a known public suffix, IP addresses with a path
// or a port, and targets of Markdown links that lead out of the current folder. It does not find report.zip and bare
// IP addresses, although some mail programs make links of them.
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

// foldedDots replaces full stops, colons and slashes of other scripts with the ASCII characters that URL parsers take
// them for.
func foldedDots(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x2024 && r <= 0x24ff || r == '。' || r > 0xff00 }) {
		return text
	}
	return strings.ReplaceAll(norm.NFKC.String(text), "。", ".")
}

func targetsIn(text string) (found []string, rest string) {
	if !strings.ContainsAny(text, ".:/\\") {
		return nil, text
	}
	for _, m := range inline.FindAllStringSubmatch(text, -1) {
		found = appendIf(found, m[1]+m[2], leadsOut(m[1]+m[2]))
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
	for _, m := range automatic.FindAllStringSubmatch(text, -1) {
		xml := strings.HasSuffix(m[1], "/") || strings.Contains(text, "</"+m[1]+">")
		found = appendIf(found, m[1], !xml)
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

// leadsOut reports whether the target of a Markdown link leads out of its folder: to another program or host, to the
// root of the host, or upwards. URL parsers read %2e as a dot, and ignore white space.
func leadsOut(target string) bool {
	target = encoded.ReplaceAllString(strings.Join(strings.Fields(target), ""), ".")
	return strings.HasPrefix(target, "/") || strings.HasPrefix(target, `\`) || strings.Contains(target, "..") ||
		scheme.MatchString(target)
}

// LeadsOut reports whether the target of a link in HTML leads out of its folder.
func LeadsOut(target string) bool { return leadsOut(target) || strings.ContainsAny(target, `:\`) }

// isHost reports whether a name with this port and path is an address.
func isHost(host, port, path string) bool {
	labels := strings.Split(strings.ToLower(host), ".")
	end := labels[len(labels)-1]
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Is4() && (port != "" || path != "" && path[0] != '.')
	}
	suffix, known := publicsuffix.PublicSuffix(ascii(labels))
	switch {
	case !known && !strings.Contains(suffix, "."), len(strings.Split(suffix, ".")) == len(labels):
		return false
	case path != "" && !strings.HasPrefix(path, "#"):
		return true
	case strings.Contains(alsoFiles, " "+end+" ") && (len(labels) == 2 || len(labels[len(labels)-2]) == 1):
		return false // such as run.sh
	case strings.Contains(countries, " "+end+" ") && isFileOrWord(host, labels):
		return false
	}
	return len(end) != 2 || strings.ContainsFunc(strings.Join(labels[:len(labels)-1], ""), unicode.IsLetter)
}

// isFileOrWord reports whether a name with a suffix of [countries] is more likely a file, such as config.h.in, or a
// member, such as user.id, or the end of a sentence and the first word of the next one without a space: there.In
func isFileOrWord(host string, labels []string) bool {
	if len(labels) > 2 {
		return len(labels[len(labels)-2]) == 1
	}
	end := host[strings.IndexByte(host, '.')+1:]
	return len(labels[0]) == 1 || usualStem(labels[0]) || end != labels[1] && strings.ToUpper(host) != host
}

// ascii returns a host name in the form that the public suffix list uses.
func ascii(labels []string) string {
	name := strings.Join(labels, ".")
	if a, err := idna.ToASCII(name); err == nil {
		return a
	}
	return name
}
