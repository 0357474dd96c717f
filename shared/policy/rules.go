package policy

import (
	"fmt"
	"strings"
)

// Rules are the operator's: they come from configuration and hold for all users. The zero value restricts nobody.
type Rules struct {
	Denied          Patterns // must not be written to
	Permitted       Patterns // where not empty: all others must not be written to
	AlwaysAsk       Patterns // asked about each time; the allowlist does not count
	AskSideEffects  bool     // the kill switch at half: whatever has an effect is asked about each time; the allowlist does not count
	DenySideEffects bool     // the kill switch: nothing that has an effect is carried out or asked about
}

// forbids reports whether the address must not be written to.
func (r Rules) forbids(a string) bool {
	return r.Denied.Match(a) || !r.Permitted.Empty() && !r.Permitted.Match(a)
}

// maxPatterns bounds one list.
const maxPatterns = 1000

// Patterns are addresses (a@x.com), domains (x.com, without those below it) and all domains below one (*.x.com, without
// x.com). Letter case makes no difference, in the local part neither: two spellings of one mailbox must not get around
// a list. A plus-address is another address, as everywhere; to deny them all, deny the domain.
type Patterns struct {
	exact    map[string]bool // addresses and domains, in lower case
	suffixes []string        // ".x.com"
}

// ParsePatterns reads a list separated by commas; white space around an entry, and an empty text, are fine. The error
// tells which entry cannot be used and does not repeat it, because it may be somebody's address.
func ParsePatterns(text string) (Patterns, error) {
	var p Patterns
	if strings.TrimSpace(text) == "" {
		return p, nil
	}
	entries := strings.Split(strings.ToLower(text), ",")
	if len(entries) > maxPatterns {
		return p, fmt.Errorf("policy: at most %d entries may stand in one list", maxPatterns)
	}
	p.exact = make(map[string]bool, len(entries))
	for i, entry := range entries {
		entry = strings.TrimSpace(entry)
		domain, below := strings.CutPrefix(entry, "*.")
		if strings.Contains(entry, "@") && !malformed(entry) {
			p.exact[entry] = true
			continue
		}
		if strings.Contains(entry, "@") || malformed("x@"+domain) {
			return Patterns{}, fmt.Errorf("policy: entry %d is not an address (a@x.com), a domain (x.com) or the domains below one (*.x.com), in ASCII", i+1)
		}
		if below {
			p.suffixes = append(p.suffixes, "."+domain)
			continue
		}
		p.exact[domain] = true
	}
	return p, nil
}

// Empty reports whether nothing matches because nothing was listed.
func (p Patterns) Empty() bool { return len(p.exact) == 0 && len(p.suffixes) == 0 }

// Len is the number of entries, without repetitions of exact ones.
func (p Patterns) Len() int { return len(p.exact) + len(p.suffixes) }

// String gives the number of entries and none of them: they may be people's addresses, and Patterns are part of a
// configuration that somebody may print.
func (p Patterns) String() string { return fmt.Sprintf("(%d entries)", p.Len()) }

// Match reports whether the normalised address is one of the patterns'.
func (p Patterns) Match(normal string) bool {
	normal = strings.ToLower(normal)
	_, domain, _ := strings.Cut(normal, "@")
	if p.exact[normal] || p.exact[domain] {
		return true
	}
	for _, s := range p.suffixes {
		if strings.HasSuffix(domain, s) {
			return true
		}
	}
	return false
}
