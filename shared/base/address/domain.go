package address

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"github.com/countersign-run/countersign/shared/base/visible"
)

// asciiDomain returns a domain in lower case, its labels in the ASCII form of DNS (RFC 5891), or the reason why it is
// refused. It refuses characters that IDNA would silently replace (a full-width letter, an ideographic full stop). It
// also refuses a label that mixes scripts which no language writes together, because readers could take it for the
// domain that it imitates.
func asciiDomain(s string) (ascii, why string) {
	lower := strings.ToLower(s)
	switch {
	case isASCII(s):
		return lower, ""
	case strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 && unicode.ToLower(r) < 0x80 }):
		return "", standIn
	}
	lower = norm.NFC.String(lower)
	for label := range strings.SplitSeq(lower, ".") {
		if !oneLanguage(label) {
			return "", mixed(label)
		}
	}
	ascii, err := idna.Lookup.ToASCII(lower)
	if err != nil {
		for _, r := range lower {
			if visible.Dangerous(r) {
				return "", fmt.Sprintf("the domain contains the invisible character U+%04X; leave it out", r)
			}
		}
		return "", "the domain is not a host name"
	}
	if back, err := idna.Lookup.ToUnicode(ascii); err != nil || back != lower {
		return "", standIn
	}
	return ascii, ""
}

// mixed returns the reason for refusing a label of several scripts. It names the first letter that is not Latin, which
// may look like a Latin one.
func mixed(label string) string {
	for _, r := range label {
		if unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) {
			return fmt.Sprintf("the domain mixes the letters of several scripts, so it may imitate another one: "+
				"%c is U+%04X; write it in the letters of one script", r, r)
		}
	}
	return "the domain mixes the letters of several scripts"
}

const standIn = "the domain contains characters that stand for others; write it in plain letters"

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}

// together lists the groups of scripts that one language mixes in one word (UTS 39 §5.2, highly restrictive).
var together = [][]*unicode.RangeTable{
	{unicode.Latin, unicode.Han, unicode.Hiragana, unicode.Katakana},
	{unicode.Latin, unicode.Han, unicode.Bopomofo},
	{unicode.Latin, unicode.Han, unicode.Hangul},
}

// oneLanguage reports whether the letters of a label are of one script, or of scripts that one language writes
// together.
func oneLanguage(label string) bool {
	for _, scripts := range together {
		if writtenIn(label, scripts...) {
			return true
		}
	}
	for _, script := range unicode.Scripts {
		if writtenIn(label, script) {
			return true
		}
	}
	return false
}

func writtenIn(label string, scripts ...*unicode.RangeTable) bool {
	return !strings.ContainsFunc(label, func(r rune) bool {
		return !unicode.In(r, unicode.Common, unicode.Inherited) && !unicode.In(r, scripts...)
	})
}
