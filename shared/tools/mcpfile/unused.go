package mcpfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// unused maps each field that has no effect here to the names of the servers with that field.
type unused map[string][]string

func (u unused) add(server string, fields []string) {
	for _, f := range fields {
		u[f] = append(u[f], server)
	}
}

// allowing lists the fields with which clients let tools run without approval.
var allowing = []string{"autoApprove", "alwaysAllow", "autoAllow", "trust", "trusted", "auto_approve", "always_allow",
	"default_tools_approval_mode", "approvalMode", "requireApproval", "require_approval"}

// lines returns at most two notes: one about fields that would skip approvals, and one about all others.
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
