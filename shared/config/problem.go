package config

import (
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// A Problem is one variable that is wrong or missing.
type Problem struct {
	Variable string
	Holds    string // its value, safe to show; empty if it is not set
	Needs    string // what it needs, as the end of a sentence
}

// String returns the problem as one line.
func (p Problem) String() string {
	if p.Holds == "" {
		return p.Variable + " is not set, and needs " + p.Needs
	}
	return p.Variable + " holds " + p.Holds + ", and needs " + p.Needs
}

// Problems is the error of [Load]: one Problem, and one line, for each wrong variable. It is never empty.
type Problems []Problem

// Error returns a line for each variable.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, x := range p {
		lines[i] = x.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes it a ValidationError whose field is the first variable.
func (p Problems) Unwrap() error { return fault.Invalid(p[0].Variable, "%s", p.Error()) }

// show returns the part of a value that is safe to show: nothing of a secret, or of a value that may be an address or
// hold a password, and otherwise the start in quotes, so that it stays on one line.
func show(value string, secret bool) string {
	switch {
	case secret || strings.Contains(value, "@"):
		return fmt.Sprintf("%d characters that are not shown", len(value))
	case len(value) > 60:
		return fmt.Sprintf("%q… (%d characters)", value[:60], len(value))
	}
	return fmt.Sprintf("%q", value)
}
