package address

import (
	"fmt"
	"strings"
)

// maxPatterns limits the length of one list.
const maxPatterns = 1000

// Patterns is a list of addresses (a@x.com), domains (x.com, without its subdomains) and subdomain wildcards (*.x.com,
// without x.com). Letter case makes no difference, not even in the local part: another spelling of a mailbox must not
// evade a list. A plus-address is a different address; to deny them all, deny the domain.
type Patterns struct {
	exact    map[string]bool // addresses and domains, in lower case
	suffixes []string        // ".x.com"
}

// ParsePatterns parses a list separated by commas; white space around an entry, and an empty list, are accepted. The
// error says which entry is invalid and does not repeat it, because it may be a person's address.
func ParsePatterns(text string) (Patterns, error) {
	var p Patterns
	if strings.TrimSpace(text) == "" {
		return p, nil
	}
	entries := strings.Split(strings.ToLower(text), ",")
	if len(entries) > maxPatterns {
		return p, fmt.Errorf("address: too many entries; the limit is %d", maxPatterns)
	}
	p.exact = make(map[string]bool, len(entries))
	for i, entry := range entries {
		entry = strings.TrimSpace(entry)
		domain, below := strings.CutPrefix(entry, "*.")
		if strings.Contains(entry, "@") && normal(entry) {
			p.exact[entry] = true
			continue
		}
		if strings.Contains(entry, "@") || !normal("x@"+domain) {
			return Patterns{}, fmt.Errorf("address: entry %d is not an address (a@x.com), a domain (x.com) or the "+
				"domains below one (*.x.com), in ASCII", i+1)
		}
		if below {
			p.suffixes = append(p.suffixes, "."+domain)
			continue
		}
		p.exact[domain] = true
	}
	return p, nil
}

// Empty reports whether the list has no entries and therefore matches nothing.
func (p Patterns) Empty() bool { return len(p.exact) == 0 && len(p.suffixes) == 0 }

// Len returns the number of entries, without duplicates of addresses and domains.
func (p Patterns) Len() int { return len(p.exact) + len(p.suffixes) }

// String returns only the number of entries: entries may be people's addresses, and a configuration that contains
// Patterns may be printed.
func (p Patterns) String() string { return fmt.Sprintf("(%d entries)", p.Len()) }

// Match reports whether the normalised address matches one of the patterns.
func (p Patterns) Match(a string) bool {
	a = strings.ToLower(a)
	_, domain, _ := strings.Cut(a, "@")
	if p.exact[a] || p.exact[domain] {
		return true
	}
	for _, s := range p.suffixes {
		if strings.HasSuffix(domain, s) {
			return true
		}
	}
	return false
}

// normal reports whether the address is valid and in its normal form.
func normal(a string) bool {
	n, err := Normalize(a)
	return err == nil && n == a
}
