package obs

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// Limits for one text, in bytes: the part that is examined, and the part that is kept.
const (
	maxRead = 16 << 10
	maxKept = 8 << 10
)

const redacted = "[redacted]"

// A secret is a form of text that must not be logged. Each pattern matches up to the next white space, so that no tail
// of a token is left. As a quick check, the pattern is applied only if the text in lower case contains one of the
// marks; most texts contain none.
type secret struct {
	marks   []string
	pattern *lazyregexp.Regexp
	with    string
}

// secrets lists the forms of tokens, keys and addresses. The order matters, because each form is applied to the result
// of the one before.
var secrets = []secret{
	{[]string{"-----begin "}, lazyregexp.New(`(?s)-----BEGIN [^-]*-----.*?(-----END [^-]*-----|$)`), redacted},
	{[]string{"authorization", "cookie"},
		lazyregexp.New(`(?i)((proxy-)?authorization|(set-)?cookie)["']?\s*[:=][^\r\n]*`), "${1}: " + redacted},
	{[]string{"bearer", "basic"}, lazyregexp.New(`(?i)((bearer|basic)\s+)(\S*(bearer|basic)\s+)*\S+`), "${1}" + redacted},
	{[]string{"ya29.", "aiza", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "gocspx-", "1//0", "4/0a", "akia",
		"xox", "eyj", "sk-", "sk_", "aq."},
		lazyregexp.New(`(ya29\.|AIza|gh[pousr]_|github_pat_|GOCSPX-|1//0|4/0A|AKIA|xox[abeprs]-|eyJ|\bsk[-_]|` +
			`AQ\.[A-Za-z0-9_-]{16})\S+`), redacted},
	{[]string{"pass", "secret", "token", "key", "code_verifier"},
		lazyregexp.New(`(?i)((pass(word|wd|phrase)|secret|token|api[_-]?key|private[_-]?key|code_verifier)s?["']?\s*` +
			`[:=]\s*["']?)[^\s&]+`), "${1}" + redacted},
	{[]string{"pass"}, lazyregexp.New(`(?i)(pass(word|wd|phrase)\s+(is\s+)?["']?)\S*\d\S*`), "${1}" + redacted},
	{[]string{"="}, lazyregexp.New(`(?i)([?&](key|code|state|sig|signature)=)[^\s&]+`), "${1}" + redacted},
	// user:password@ of an address
	{[]string{"@"}, lazyregexp.New(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#]*@`), "${1}" + redacted},
	// e-mail addresses, and user:password@host without a scheme; must be the last, see RemoveSecrets
	{[]string{"@", "%40"}, lazyregexp.New(`(?i)\S*(@|%40)\S*`), redacted},
}

// remove returns the text without secrets of this form. small is the original text in lower case; replacements of
// secrets contain none of the marks.
func (x secret) remove(s, small string) string {
	for _, mark := range x.marks {
		if strings.Contains(small, mark) {
			return x.pattern.ReplaceAllString(s, x.with)
		}
	}
	return s
}

// Redact removes text that must not be logged: tokens and keys by their form (Google, GitHub, AWS, Slack, JWT, PEM,
// Bearer), values after words such as password, passwords in URLs, and e-mail addresses. It replaces control characters
// and direction-changing characters with U+FFFD, and cuts a text over 8 KiB. Redact is only a safeguard: text that is
// known to be private must not be logged at all.
func Redact(s string) string {
	if len(s) > maxRead { // at white space, because half an address is not recognised
		s = s[:strings.LastIndexFunc(s[:maxRead], unicode.IsSpace)+1] + "…"
	}
	return strings.Map(printable, clip.Text(removed(s), maxKept))
}

// removed returns the text without secrets.
func removed(s string) string { return without(s, secrets) }

func without(s string, secrets []secret) string {
	// patterns ignore case, so ſ matches s, as the Kelvin sign matches k
	small := strings.ReplaceAll(strings.ToLower(s), "ſ", "s")
	for _, x := range secrets {
		s = x.remove(s, small)
	}
	return s
}

// printable replaces characters that a terminal or a line reader would not show as text. Newline and tab stay, because
// JSON escapes them.
func printable(r rune) rune {
	switch {
	case r == '\n' || r == '\t' || ' ' <= r && r <= '~':
		return r
	case unicode.IsControl(r), unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp):
		return utf8.RuneError
	}
	return r
}

// sensitive lists the keys whose text is never logged, in lower case and without punctuation.
var sensitive = map[string]bool{
	"body": true, "subject": true, "to": true, "cc": true, "bcc": true, "from": true, "recipient": true,
	"recipients": true,
	"attendees":  true, "address": true, "addresses": true, "args": true, "arguments": true, "editedargs": true,
	"prompt": true,
	"system": true, "contents": true, "content": true, "text": true, "html": true, "raw": true, "preview": true,
	"comment": true,
	"persona": true, "query": true, "params": true, "description": true, "location": true, "displayname": true,
	"handle": true,
	"code":   true, "state": true, // of an OAuth link; a fault.Code is kept, because of its type
}

// within lists words that make a key sensitive wherever they occur in it.
var within = []string{"token", "secret", "password", "passwd", "passphrase", "authorization", "cookie", "apikey",
	"credential", "privatekey", "verifier", "email", "assertion"}

// isSensitive reports whether texts under the key are never logged. Numbers under the key are logged, because token
// counts are useful and harmless.
func isSensitive(key string) bool {
	key = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, key)
	if sensitive[key] {
		return true
	}
	for _, w := range within {
		if strings.Contains(key, w) {
			return true
		}
	}
	return false
}
