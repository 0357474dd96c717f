package config

import (
	"fmt"
	"log/slog"
)

// Secret is a text that no print, log or JSON shows: each of them gives its length instead. The text is behind a
// pointer, so that not even %v on a struct that holds a Secret in an unexported field prints it.
type Secret struct{ text *string }

// NewSecret makes a Secret. An empty text is no secret at all.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// Reveal gives the text itself, or an empty one. Call it where the text is used and nowhere else.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsSet reports whether there is a text.
func (s Secret) IsSet() bool { return s.text != nil }

// String gives the length, in place of the text.
func (s Secret) String() string {
	if s.text == nil {
		return "(not set)"
	}
	return fmt.Sprintf("(%d characters)", len(*s.text))
}

// Format implements fmt.Formatter for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, s.String()) }

// MarshalText implements encoding.TextMarshaler, which encoding/json uses too.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
