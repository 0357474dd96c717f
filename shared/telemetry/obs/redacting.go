package obs

import (
	"context"
	"log/slog"
)

// Redacting returns a handler that redacts records as New's logger does, and passes those at or above the level to
// another handler. level is one of Levels; anything else is info. It is for programs with a log of their own.
func Redacting(to slog.Handler, level string) slog.Handler {
	return &redacting{to, levels[level], false}
}

type redacting struct {
	to     slog.Handler
	level  slog.Level
	secret bool // an enclosing group has a sensitive name
}

func (h *redacting) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level && h.to.Enabled(ctx, l)
}

func (h *redacting) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &redacting{h.to.WithAttrs(clean(attrs, h.secret, 0)), h.level, h.secret}
}

func (h *redacting) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &redacting{h.to.WithGroup(Redact(name)), h.level, h.secret || isSensitive(name)}
}

func (h *redacting) Handle(ctx context.Context, r slog.Record) error {
	var attrs []slog.Attr
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a)
		return true
	})
	line := slog.NewRecord(r.Time, r.Level, Redact(r.Message), r.PC)
	line.AddAttrs(clean(attrs, h.secret, 0)...)
	return h.to.Handle(ctx, line)
}
