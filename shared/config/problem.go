package config

import (
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// A Problem is one variable that is wrong or missing.
type Problem struct {
	Variable string
	Holds    string // the value, safe to show; empty if it is not set
	Needs    string // what the variable needs, as the end of a sentence
}

// String returns the problem as one line.
func (p Problem) String() string {
	if p.Holds == "" {
		return p.Variable + " is not set; it needs " + p.Needs
	}
	return p.Variable + " is " + p.Holds + "; it needs " + p.Needs
}

// Problems is the error of [Load]: one Problem for each wrong variable, never empty.
type Problems []Problem

// Error returns one line for each variable.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, x := range p {
		lines[i] = x.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns a ValidationError whose field is the first variable.
func (p Problems) Unwrap() error { return fault.Invalid(p[0].Variable, "%s", p.Error()) }

// show returns the part of a value that is safe to show: nothing of a secret or of a value with an @, which may be an
// address or contain a password. Of other values it returns the beginning, quoted to stay on one line.
func show(value string, secret bool) string {
	switch {
	case secret || strings.Contains(value, "@"):
		return fmt.Sprintf("%d characters, not shown", len(value))
	case len(value) > 60:
		return fmt.Sprintf("%q… (%d characters)", value[:60], len(value))
	}
	return fmt.Sprintf("%q", value)
}
