package taint

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/lazyregexp"
)

// Bounds of decoding: encodings within encodings, and the characters of the shortest run of base64 or hex that is
// decoded.
const (
	maxDecodings = 3
	leastEncoded = 8
)

var (
	percentRuns = lazyregexp.New(`(?:%[0-9a-fA-F]{2})+`)
	quotedRuns  = lazyregexp.New(`(?:=[0-9a-fA-F]{2})+`)
	softBreaks  = lazyregexp.New(`=\r?\n`)
	escapeRuns  = lazyregexp.New(`(?:\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\u\{[0-9a-fA-F]{1,6}\}|\\[0-3][0-7]{2})+`)
	base64Runs  = lazyregexp.New(`[A-Za-z0-9+/_-]{4,}(?:\r?\n[A-Za-z0-9+/_-]{4,})*={0,2}`)
	hexRuns     = lazyregexp.New(`(?:0x)?[0-9a-fA-F]{2}(?:[ :,\n]{0,2}(?:0x)?[0-9a-fA-F]{2}){3,}`)
)

// encodings are the ways in which a text is written with other characters. Each returns the text with its runs of that
// encoding decoded.
var encodings = []struct {
	signs  string // a text without any of these has no such run; empty: letters and digits
	decode func(string) string
}{
	{"%", func(s string) string {
		return percentRuns.ReplaceAllStringFunc(s, func(r string) string { return octets(r, "%") })
	}},
	{"&", html.UnescapeString},
	{"=", func(s string) string {
		return quotedRuns.ReplaceAllStringFunc(softBreaks.ReplaceAllString(s, ""),
			func(r string) string { return octets(r, "=") })
	}},
	{`\`, func(s string) string { return escapeRuns.ReplaceAllStringFunc(s, escaped) }},
	{"", func(s string) string { return hexRuns.ReplaceAllStringFunc(s, fromHex) }},
	{"", func(s string) string { return base64Runs.ReplaceAllStringFunc(s, fromBase64) }},
}

// decodings returns the texts that a text becomes when what is encoded in it is decoded, without the text itself.
func decodings(s string) (all []string) {
	seen := map[string]bool{s: true}
	for next, depth := []string{s}, 0; depth < maxDecodings && len(next) > 0; depth++ {
		from := next
		next = nil
		for _, t := range from {
			for _, e := range encodings {
				if e.signs == "" && !encodable(t) || e.signs != "" && !strings.Contains(t, e.signs) {
					continue
				}
				if d := e.decode(t); !seen[d] {
					seen[d] = true
					next = append(next, d)
				}
			}
		}
		all = append(all, next...)
	}
	return all
}

// encodable reports whether a text has a run of letters and digits that is long enough.
func encodable(s string) bool {
	run := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("+/_-", c) >= 0:
			if run++; run >= leastEncoded {
				return true
			}
		case c != ' ' && c != ':': // as some write hex
			run = 0
		}
	}
	return false
}

// octets decodes pairs of hex digits behind a sign. What is no text stays as it is.
func octets(run, sign string) string { return textOr(run, hexBytes(strings.ReplaceAll(run, sign, ""))) }

func fromHex(run string) string {
	return textOr(run, hexBytes(strings.Map(func(r rune) rune {
		if strings.ContainsRune(" :,\n", r) {
			return -1
		}
		return r
	}, strings.ReplaceAll(run, "0x", ""))))
}

func hexBytes(digits string) []byte {
	b, err := hex.DecodeString(digits)
	if err != nil {
		return nil
	}
	return b
}

// escaped decodes the escapes of programming languages.
func escaped(run string) string {
	var b strings.Builder
	for run != "" {
		size, digits, in := 4, "", 16
		switch {
		case strings.HasPrefix(run, `\u{`):
			size = strings.IndexByte(run, '}') + 1
			digits = run[3 : size-1]
		case run[1] == 'u':
			size, digits = 6, run[2:6]
		case run[1] == 'x':
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

func fromBase64(run string) string {
	plain := strings.Map(func(r rune) rune {
		switch r {
		case '\r', '\n', '=':
			return -1
		case '-':
			return '+'
		case '_':
			return '/'
		}
		return r
	}, run)
	if len(plain) < leastEncoded || len(plain)%4 == 1 {
		return run
	}
	b, err := base64.RawStdEncoding.DecodeString(plain)
	if err != nil {
		return run
	}
	return textOr(run, b)
}

// textOr returns the bytes if they are a text, and the run if they are not.
func textOr(run string, b []byte) string {
	s := string(b)
	if len(b) == 0 || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) && !unicode.IsSpace(r) || r == utf8.RuneError
	}) {
		return run
	}
	return s
}
