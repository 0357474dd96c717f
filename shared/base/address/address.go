// Package address defines which e-mail addresses are valid. It is stricter than RFC 5322 on purpose: net/mail accepts
// display names, comments, groups, quoted local parts, address literals and invisible characters. Attackers have used
// each of these to show two readers different recipients. A valid address here means one mailbox, written in one way.
// An internationalised domain is converted to its ASCII form; the part before the @ must be ASCII.
package address

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// The limits in octets: RFC 5321 §4.5.3.1 for the local part and the path, RFC 1035 §2.3.4 for the name and its labels.
const (
	MaxLocal   = 64
	MaxDomain  = 253
	MaxAddress = 254
	maxLabel   = 63
)

// localSigns are the characters besides letters, digits and dots that a local part may contain: those of the atext of
// RFC 5322 §3.2.3 that occur in people's addresses. Some of the others have been interpreted as routes (% !), as
// patterns (* ?), as paths (/) and as commands (| ` $).
const localSigns = "&'+-=_~"

// inward lists top-level labels that never lead to a mail host on the public internet, but may lead to an internal one
// (RFC 6761, RFC 6762, RFC 7686, RFC 8375, RFC 9476, and the names that routers use). The reserved names "test" and
// "example" are accepted: nothing can be delivered there, and they are meant for tests and examples.
var inward = map[string]bool{
	"localhost": true, "local": true, "localdomain": true, "internal": true, "intranet": true, "lan": true,
	"home": true, "corp": true, "private": true, "invalid": true, "onion": true, "alt": true, "arpa": true,
}

// Normalize returns the normal form of an address: the domain in lower-case ASCII, the local part unchanged, since only
// the receiving host may decide whether its case matters. Two addresses are the same if and only if their normal forms
// are the same bytes. The error is a ValidationError without a field, and never repeats the address.
func Normalize(s string) (string, error) {
	local, domain, found := strings.Cut(s, "@")
	domain, why := asciiDomain(domain)
	if why == "" {
		why = refusal(local, domain, found)
	}
	if why != "" {
		return "", fault.Invalid("", "%s", why)
	}
	return local + "@" + domain, nil
}

// List normalises each address of a field and removes duplicates, keeping the order. Its ValidationErrors name the
// field and the position in it ("to/2"), and never repeat an address. max applies to the length of in, duplicates
// included.
func List(field string, in []string, max int) ([]string, error) {
	if len(in) > max {
		return nil, fault.Invalid(field, "%d addresses; the limit is %d", len(in), max)
	}
	seen := make(map[string]bool, len(in))
	var out []string
	for i, s := range in {
		a, err := Normalize(s)
		if err != nil {
			return nil, fault.Within(fmt.Sprintf("%s/%d", field, i), err)
		}
		if !seen[a] {
			seen[a] = true
			out = append(out, a)
		}
	}
	return out, nil
}

// Unicode returns the address with its punycode labels decoded to the letters that a reader would see, and whether
// there were any. Show the result next to the address, never instead of it: it may look like another person's
// address.
func Unicode(normal string) (shown string, punycode bool) {
	local, domain, ok := strings.Cut(normal, "@")
	if !ok || !strings.Contains("."+domain, ".xn--") {
		return normal, false
	}
	u, err := idna.Punycode.ToUnicode(domain)
	if err != nil {
		return normal, true
	}
	return local + "@" + u, true
}

// refusal returns the reason why local@domain is not a valid address, or "" if it is valid.
func refusal(local, domain string, found bool) string {
	switch {
	case !found || strings.Contains(domain, "@"):
		return "an e-mail address has exactly one @ and no display name"
	case len(local)+1+len(domain) > MaxAddress:
		return fmt.Sprintf("the address has %d octets; the limit is %d", len(local)+1+len(domain), MaxAddress)
	case len(local) > MaxLocal:
		return fmt.Sprintf("the part before the @ has %d octets; the limit is %d", len(local), MaxLocal)
	}
	if why := badLocal(local); why != "" {
		return why
	}
	return badDomain(domain)
}

func badLocal(s string) string {
	for _, atom := range strings.Split(s, ".") {
		if atom == "" {
			return "the part before the @ is empty, or has a dot at its start, its end, or beside another dot"
		}
	}
	for _, c := range s {
		if c >= 0x80 && unicode.IsLetter(c) {
			return fmt.Sprintf("the part before the @ contains %s: mail can only be sent to addresses whose first "+
				"part is ASCII", named(c))
		}
		if c >= 0x80 || !alphanumeric(byte(c)) && c != '.' && !strings.ContainsRune(localSigns, c) {
			return fmt.Sprintf("the part before the @ contains %s, which is not accepted there", named(c))
		}
	}
	if s[0] == '-' {
		return "the part before the @ begins with -, like an option of a command"
	}
	return ""
}

// named returns a character for a message, or its code point if it is not printable ASCII.
func named(c rune) string {
	if c > ' ' && c < 0x7f {
		return "the character " + string(c)
	}
	return fmt.Sprintf("the character U+%04X", c)
}

func badDomain(s string) string {
	if len(s) > MaxDomain {
		return fmt.Sprintf("the domain has %d octets; the limit is %d", len(s), MaxDomain)
	}
	labels := strings.Split(s, ".")
	if len(labels) < 2 {
		return "the domain needs a dot"
	}
	for _, l := range labels {
		if !isLabel(l) {
			return "the domain is not a host name"
		}
	}
	switch last := labels[len(labels)-1]; {
	case !isTop(last):
		return "the domain does not end in a top-level domain"
	case inward[last]:
		return "the domain is not on the public internet"
	}
	return ""
}

// isLabel reports whether a lower-case label consists of letters, digits and inner hyphens, and decodes if it claims to
// be punycode.
func isLabel(l string) bool {
	if l == "" || len(l) > maxLabel || l[0] == '-' || l[len(l)-1] == '-' {
		return false
	}
	for i := range len(l) {
		if !alphanumeric(l[i]) && l[i] != '-' {
			return false
		}
	}
	if strings.HasPrefix(l, "xn--") {
		u, err := idna.Punycode.ToUnicode(l)
		return err == nil && u != l
	}
	return true
}

func isTop(l string) bool {
	if strings.HasPrefix(l, "xn--") {
		return true
	}
	for i := range len(l) {
		if l[i] < 'a' || l[i] > 'z' {
			return false
		}
	}
	return len(l) >= 2
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
