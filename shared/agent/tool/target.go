package tool

import "github.com/countersign-run/countersign/shared/base/address"

// TargetKind says what the value of a [Target] is. A tool may have kinds of its own.
type TargetKind string

// TargetAddress is the kind of an e-mail address in its normal form ([address.Normalize]). It is the one kind that a
// user can always allow and that an operator's lists name.
const TargetAddress TargetKind = "address"

// TargetRepository is the kind of a repository on GitHub: owner/name.
const TargetRepository TargetKind = "repository"

// Target is a person or a thing that a call reaches: who gets a mail, the host that a command runs on.
type Target struct {
	Kind  TargetKind
	Value string // in the normal form of its kind
}

// Addresses returns a target for each address.
func Addresses(addresses []string) []Target {
	var out []Target
	for _, a := range addresses {
		out = append(out, Target{TargetAddress, a})
	}
	return out
}

// Normal returns the target with its value in the normal form of its kind, or unchanged if the value has none.
func (t Target) Normal() Target {
	if t.Kind == TargetAddress {
		if normal, err := address.Normalize(t.Value); err == nil {
			t.Value = normal
		}
	}
	return t
}

// Malformed reports whether the value is not in the normal form of its kind. Of a kind that is not known here, only the
// empty value is malformed.
func (t Target) Malformed() bool {
	if t.Kind != TargetAddress {
		return t.Value == ""
	}
	normal, err := address.Normalize(t.Value)
	return err != nil || normal != t.Value
}

// Lookalike reports whether the value may be made to look like another one: an address whose domain is written in
// punycode.
func (t Target) Lookalike() bool {
	if t.Kind != TargetAddress {
		return false
	}
	_, punycode := address.Unicode(t.Value)
	return punycode
}
