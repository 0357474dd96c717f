package obs

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/lazyregexp"
)

// Bounds of one text, in bytes: the part that is examined, and the part that is kept.
const (
	maxRead = 16 << 10
	maxKept = 8 << 10
)

const redacted = "[redacted]"

// secrets holds the patterns of tokens, keys and addresses. Each matches up to the next white space, so that no tail of
// a token is left; the order matters, because each is applied to the result of the one before.
var secrets = []struct {
	pattern *lazyregexp.Regexp
	with    string
}{
	{lazyregexp.New(`(?s)-----BEGIN [^-]*-----.*?(-----END [^-]*-----|$)`), redacted},
	{lazyregexp.New(`(?i)((proxy-)?authorization|(set-)?cookie)["']?\s*[:=][^\r\n]*`), "${1}: " + redacted},
	{lazyregexp.New(`(?i)(\S*(bearer|basic)\s+)+\S+`), redacted},
	{lazyregexp.New(`(ya29\.|AIza|gh[pousr]_|github_pat_|GOCSPX-|1//0|4/0A|AKIA|xox[abeprs]-|eyJ|\bsk[-_]|AQ\.[A-Za-z0-9_-]{16})\S+`), redacted},
	{lazyregexp.New(`(?i)((pass(word|wd|phrase)|secret|token|api[_-]?key|private[_-]?key|code_verifier)s?["']?\s*[:=]\s*["']?)[^\s&]+`), "${1}" + redacted},
	{lazyregexp.New(`(?i)(pass(word|wd|phrase)\s+(is\s+)?["']?)\S*\d\S*`), "${1}" + redacted},
	{lazyregexp.New(`(?i)([?&](key|code|state|sig|signature)=)[^\s&]+`), "${1}" + redacted},
	{lazyregexp.New(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#]*@`), "${1}" + redacted}, // user:password@ of an address
	// e-mail addresses, and user:password@host without a scheme
	{lazyregexp.New(`(?i)\S*(@|%40)\S*`), redacted},
}

// Redact removes from a text what must not be logged: tokens and keys by their form (Google, GitHub, AWS, Slack, JWT,
// PEM, Bearer), values after words such as password, passwords in URLs, and e-mail addresses. Control and
// direction-changing characters become U+FFFD, and a text over 8 KiB is cut. It is a safeguard only: a text that is
// known to be private must not be logged at all.
func Redact(s string) string {
	if len(s) > maxRead { // at white space, because half an address is not recognised
		s = s[:strings.LastIndexFunc(s[:maxRead], unicode.IsSpace)+1] + "…"
	}
	for _, x := range secrets {
		s = x.pattern.ReplaceAllString(s, x.with)
	}
	return strings.Map(printable, clip.Text(s, maxKept))
}

// printable replaces characters that a terminal or a line reader would not show as text. Newline and tab stay: JSON
// escapes them.
func printable(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case unicode.IsControl(r), unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp):
		return utf8.RuneError
	}
	return r
}

// sensitive holds the keys whose text is never logged, in lower case and without punctuation.
var sensitive = map[string]bool{
	"body": true, "subject": true, "to": true, "cc": true, "bcc": true, "from": true, "recipient": true,
	"recipients": true,
	"attendees":  true, "address": true, "addresses": true, "args": true, "arguments": true, "editedargs": true,
	"prompt": true,
	"system": true, "contents": true, "content": true, "text": true, "html": true, "raw": true, "preview": true,
	"comment": true,
	"persona": true, "query": true, "params": true, "description": true, "location": true, "displayname": true,
	"handle": true,
	"code":   true, "state": true, // of an OAuth link; a fault.Code is kept, by its type
}

// within holds words that make a key sensitive wherever they occur in it.
var within = []string{"token", "secret", "password", "passwd", "passphrase", "authorization", "cookie", "apikey",
	"credential", "privatekey", "verifier", "email", "assertion"}

// isSensitive reports whether texts under the key are never logged. Numbers are: token counts are useful and harmless.
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
