package mcpfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// unused collects the fields of entries that have no effect here: for each field the names of the servers that have it.
type unused map[string][]string

func (u unused) add(server string, fields []string) {
	for _, f := range fields {
		u[f] = append(u[f], server)
	}
}

// allowing are the fields with which clients let tools run without asking.
var allowing = []string{"autoApprove", "alwaysAllow", "autoAllow", "trust", "trusted", "auto_approve", "always_allow",
	"default_tools_approval_mode", "approvalMode", "requireApproval", "require_approval"}

// lines returns at most two notes: of fields that would allow, and of all others.
func (u unused) lines() (notes []string) {
	allow, rest := []string{}, []string{}
	for _, f := range slices.Sorted(maps.Keys(u)) {
		text := fmt.Sprintf("%s (%s)", f, strings.Join(u[f], ", "))
		if slices.Contains(allowing, f) {
			allow = append(allow, text)
		} else {
			rest = append(rest, text)
		}
	}
	if len(allow) > 0 {
		notes = append(notes, "these fields allow nothing here, and effects are asked for: "+strings.Join(allow, ", "))
	}
	if len(rest) > 0 {
		notes = append(notes, "these fields have no effect: "+strings.Join(rest, ", "))
	}
	return notes
}
