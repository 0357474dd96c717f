package tool

import "github.com/countersign-run/countersign/shared/base/address"

// TargetKind is the kind of a [Target]'s value. A tool can have its own kinds.
type TargetKind string

// TargetAddress is the kind of an e-mail address in its normal form ([address.Normalize]). It is the only kind that a
// user can always allow and that an operator's lists can name.
const TargetAddress TargetKind = "address"

// TargetRepository is the kind of a GitHub repository: owner/name.
const TargetRepository TargetKind = "repository"

// Target is a person or a thing that a call reaches, such as the recipient of an e-mail or the host of a command.
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

// Malformed reports whether the value is not in the normal form of its kind. For a kind that this package does not
// know, only the empty value is malformed.
func (t Target) Malformed() bool {
	if t.Kind != TargetAddress {
		return t.Value == ""
	}
	normal, err := address.Normalize(t.Value)
	return err != nil || normal != t.Value
}

// Lookalike reports whether the value could be made to look like another one. It is true for an address with a punycode
// domain.
func (t Target) Lookalike() bool {
	if t.Kind != TargetAddress {
		return false
	}
	_, punycode := address.Unicode(t.Value)
	return punycode
}
