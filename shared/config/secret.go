package config

import (
	"fmt"
	"log/slog"
)

// A Secret is a text that prints, logs and JSON never show; they show its length instead. The text is behind a pointer,
// so even %v of a struct with a Secret in an unexported field does not print it.
type Secret struct{ text *string }

// NewSecret returns a Secret of text. An empty text is an unset Secret.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// Reveal returns the text, or "" if it is not set. Call it only where the text is used.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsSet reports whether the Secret has a text.
func (s Secret) IsSet() bool { return s.text != nil }

// String returns the length of the text.
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
