package taint

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"html"
	"io"
	"mime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// Limits of decoding: the depth of nested encodings, and the minimum length of a run of base64 or hex, in whole texts
// and where each word counts.
const (
	maxDecodings = 3
	leastRun     = 32
	leastWord    = 6
	wrapped      = 16 // minimum length of a line whose run continues on the next line
)

var (
	percentRuns = lazyregexp.New(`(?:%[0-9a-fA-F]{2})+`)
	quotedRuns  = lazyregexp.New(`(?:=[0-9a-fA-F]{2})+`)
	softBreaks  = lazyregexp.New(`=\r?\n`)
	escapeRuns  = lazyregexp.New(`(?:\\[x'][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\u\{[0-9a-fA-F]{1,6}\}|\\[0-3][0-7]{2}|` +
		`\\x\{[0-9a-fA-F]{1,6}\}|\\N\{U\+[0-9a-fA-F]{1,6}\}|\\U[0-9a-fA-F]{8}|%u[0-9a-fA-F]{4})+`)
	cssRuns   = lazyregexp.New(`(?:\\[0-9a-fA-F]{2,6} ?)+`)
	pointRuns = lazyregexp.New(`(?i:u\+(?:10[0-9a-f]{4}|[1-9a-f][0-9a-f]{4}|[0-9a-f]{4})[ ,;]{0,2})+`)
	named     = lazyregexp.New(`\\N\{LATIN (?:SMALL|CAPITAL) LETTER ([A-Z])\}`)
	tags      = lazyregexp.New(`</?[a-zA-Z!][^<>]{0,500}>`)
	unshown   = lazyregexp.New(`!?\[\]\([^()\n]{0,500}\)|\]\([^()\n]{0,500}\)`) // of links in Markdown
)

// decodings returns the readings of a text without HTML tags and without the targets of links in Markdown, and with
// percent signs, HTML entities, quoted-printable, encoded words of e-mails, escapes of programming languages and of
// RTF, uuencode, base64, base32, base85 and codes of characters (hex, decimal, binary) decoded, also when nested. For
// uuencode, base64, base32, base85 and codes, a reading consists only of the decoded runs. Those except uuencode's have
// at least least characters.
func decodings(s string, least int) (all []string) {
	seen := map[string]bool{s: true}
	next := []string{s}
	for depth := 0; depth < maxDecodings && len(next) > 0; depth++ {
		from := next
		next = nil
		for _, t := range from {
			for _, d := range decodedOnce(t, least) {
				if d != "" && !seen[d] {
					seen[d] = true
					next = append(next, d)
				}
			}
		}
		all = append(all, next...)
	}
	return all
}

func decodedOnce(s string, least int) (all []string) {
	if strings.Contains(s, "%") {
		plus := strings.ReplaceAll(s, "+", " ")
		all = append(all, percentRuns.ReplaceAllStringFunc(plus, func(r string) string { return octets(r, "%") }))
	}
	if strings.Contains(s, "&") {
		all = append(all, html.UnescapeString(s))
	}
	if strings.Contains(s, "=") {
		all = append(all, encodedWords(s), quotedRuns.ReplaceAllStringFunc(softBreaks.ReplaceAllString(s, ""),
			func(r string) string { return octets(r, "=") }))
	}
	if strings.Contains(s, "<") {
		all = append(all, tags.ReplaceAllString(s, ""))
	}
	if strings.Contains(s, "](") {
		all = append(all, unshown.ReplaceAllString(s, ""))
	}
	if strings.Contains(s, `\`) || strings.Contains(s, "%u") {
		all = append(all, escapeRuns.ReplaceAllStringFunc(named.ReplaceAllString(s, "$1"), escaped),
			cssRuns.ReplaceAllStringFunc(s, escapedInCSS))
	}
	if strings.Contains(s, "U+") || strings.Contains(s, "u+") {
		all = append(all, pointRuns.ReplaceAllStringFunc(s, points))
	}
	for i := range packings {
		all = append(all, packings[i].unpacked(s, least))
	}
	all = append(all, words85(s, leastRun), uudecoded(s))
	base, pairs := runsIn(s, least)
	for i, run := range base {
		base[i] = fromBase64(run, least)
	}
	all = append(all, strings.TrimSpace(strings.Join(base, "\n")))
	if pairs {
		for _, k := range kindsOfCode {
			all = append(all, codes(s, least, k))
		}
	}
	if hides(s) {
		all = append(all, unhidden(s))
	}
	return all
}

// encodedWords decodes the words of mail headers, such as =?utf-8?q?caf=C3=A9?= (RFC 2047).
func encodedWords(s string) string {
	d := mime.WordDecoder{CharsetReader: func(_ string, in io.Reader) (io.Reader, error) { return in, nil }}
	text, err := d.DecodeHeader(s)
	if err != nil {
		return ""
	}
	return text
}

// runsIn returns the base64 runs that are long enough, and whether the text may contain a hex run.
func runsIn(s string, least int) (base []string, pairs bool) {
	begin, line, digits := 0, 0, 0
	for i := 0; i <= len(s); i++ {
		c := byte(0)
		if i < len(s) {
			c = s[i]
		}
		switch {
		case isHexDigit(c):
			if digits++; digits >= min(least, 16) {
				pairs = true
			}
		case strings.IndexByte(" :,;|_-\nxXhHuUN#$<>[](){}./+&\\", c) < 0 && !inName(s, i):
			digits = 0
		}
		switch {
		case isBase64(c):
			line++
			continue
		case c == '\r' && line >= wrapped:
			continue
		case c == '\n' && line >= wrapped:
			line = 0
			continue
		}
		if i-begin >= least {
			base = append(base, s[begin:i])
		}
		begin, line = i+1, 0
	}
	return base, pairs
}

func isHexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func isBase64(c byte) bool {
	return isHexDigit(c) || c >= 'g' && c <= 'z' || c >= 'G' && c <= 'Z' || c != 0 && strings.IndexByte("+/-_", c) >= 0
}

// octets decodes pairs of hex digits that each follow a sign. Bytes that are not text stay encoded.
func octets(run, sign string) string {
	if s := textOf(hexBytes(strings.ReplaceAll(run, sign, ""))); s != "" {
		return s
	}
	return run
}

// points decodes a run of code points, such as U+0041 U+0042.
func points(run string) string {
	var b strings.Builder
	for p := range strings.FieldsFuncSeq(run, func(r rune) bool { return strings.ContainsRune("uU+ ,;", r) }) {
		n, err := strconv.ParseInt(p, 16, 32)
		if err != nil {
			n = unicode.ReplacementChar
		}
		b.WriteRune(rune(n))
	}
	return b.String()
}

func hexBytes(digits string) []byte {
	b, err := hex.DecodeString(digits)
	if err != nil {
		return nil
	}
	return b
}

// escaped decodes a run of escapes of programming languages.
func escaped(run string) string {
	var b strings.Builder
	for run != "" {
		size, digits, in := 4, "", 16
		switch {
		case run[2] == '{':
			size = strings.IndexByte(run, '}') + 1
			digits = strings.TrimPrefix(run[3:size-1], "U+")
		case run[1] == 'u':
			size, digits = 6, run[2:6]
		case run[1] == 'U':
			size, digits = 10, run[2:10]
		case run[1] == 'x', run[1] == '\'':
			digits = run[2:4]
		default:
			digits, in = run[1:4], 8
		}
		n, err := strconv.ParseInt(digits, in, 32)
		if err != nil {
			n = unicode.ReplacementChar
		}
		b.WriteRune(rune(n))
		run = run[size:]
	}
	return b.String()
}

// escapedInCSS decodes a run of CSS escapes. A space ends each escape, and is not part of the text.
func escapedInCSS(run string) string {
	var b strings.Builder
	for code := range strings.SplitSeq(run[1:], `\`) {
		n, err := strconv.ParseInt(strings.TrimSpace(code), 16, 32)
		if err != nil {
			n = unicode.ReplacementChar
		}
		b.WriteRune(rune(n))
	}
	return b.String()
}

const base32Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

var plainBase64 = strings.NewReplacer("\r", "", "\n", "", "-", "+", "_", "/")

// fromBase64 decodes a run, or a part of it that begins a little later, because other characters may precede the
// encoded part.
func fromBase64(run string, least int) string {
	run = plainBase64.Replace(run)
	if upper := strings.ToUpper(run); strings.Trim(upper, base32Letters) == "" {
		b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(upper)
		if s := textOf(b); err == nil && s != "" {
			return s
		}
	}
	parts := []string{run}
	if at := strings.LastIndexByte(run, '/'); at >= 0 {
		parts = append(parts, run[at+1:])
	}
	for _, p := range parts {
		for skip := 0; skip < 4 && len(p)-skip >= min(least, leastWord); skip++ {
			code := p[skip:]
			if len(code)%4 == 1 {
				code = code[:len(code)-1]
			}
			if b, err := base64.RawStdEncoding.DecodeString(code); err == nil {
				if s := textOf(b); s != "" {
					return s
				}
			}
		}
	}
	return ""
}

// textOf returns the bytes as a string if they are text, or "". ASCII in UTF-16 is text, too.
func textOf(b []byte) string {
	if zeros := bytes.Count(b, []byte{0}); zeros > 0 && zeros == len(b)/2 {
		b = bytes.ReplaceAll(b, []byte{0}, nil)
	}
	s := string(b)
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) && !unicode.IsSpace(r) || r == utf8.RuneError
	}) {
		return ""
	}
	return s
}
