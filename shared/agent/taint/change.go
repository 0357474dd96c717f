package taint

import (
	"slices"
	"strings"
)

// words returns all text of the call.
func (c Call) words() string {
	all := slices.Clone(c.Text)
	for _, change := range c.Changes {
		all = append(all, change.Added)
	}
	return strings.Join(all, "\n")
}

// keeps reports whether the mention occurs only in texts that the call changes, and each of these already contains it.
func (c Call) keeps(m mention) (kept bool) {
	if slices.Contains(mentions(strings.Join(c.Text, "\n")), m) {
		return false
	}
	for _, change := range c.Changes {
		if !slices.Contains(mentions(change.Added), m) {
			continue
		}
		if kept = slices.Contains(mentions(change.Stood), m); !kept {
			return false
		}
	}
	return kept
}
