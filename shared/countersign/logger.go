package countersign

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// LogLevel selects what an agent logs: "silent" (the default), "error", "warn", "info" or "debug". Each level
// includes the ones before it. No line has content of a conversation, an address or a key.
type LogLevel string

// LogFuncs is a [slog.Handler] made of functions, for other logging packages: Logger: slog.New(LogFuncs{Error:
// log.Println}). Each function is called with a line's message, followed by its attributes, each a [slog.Attr], which
// prints as key=value. Lines for a nil function are dropped.
type LogFuncs struct {
	Log, Warn, Error, Debug func(args ...any) // Log is for the level info
}

// Enabled implements [slog.Handler].
func (f LogFuncs) Enabled(_ context.Context, l slog.Level) bool { return f.of(l) != nil }

// Handle implements [slog.Handler].
func (f LogFuncs) Handle(_ context.Context, r slog.Record) error {
	return logLine{f, inGroup}.Handle(context.Background(), r)
}

// WithAttrs implements [slog.Handler].
func (f LogFuncs) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logLine{f, inGroup}.WithAttrs(attrs)
}

// WithGroup implements [slog.Handler].
func (f LogFuncs) WithGroup(name string) slog.Handler { return logLine{f, inGroup}.WithGroup(name) }

func (f LogFuncs) of(l slog.Level) func(...any) {
	switch {
	case l >= slog.LevelError:
		return f.Error
	case l >= slog.LevelWarn:
		return f.Warn
	case l >= slog.LevelInfo:
		return f.Log
	}
	return f.Debug
}

// logLine is LogFuncs with the attributes and groups of a logger.
type logLine struct {
	LogFuncs
	nest func([]slog.Attr) []slog.Attr // adds the attributes of a line
}

func inGroup(attrs []slog.Attr) []slog.Attr { return attrs }

func (h logLine) Handle(_ context.Context, r slog.Record) error {
	log := h.of(r.Level)
	if log == nil {
		return nil
	}
	var attrs []slog.Attr
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a)
		return true
	})
	args := []any{r.Message}
	for _, a := range h.nest(attrs) {
		args = append(args, a)
	}
	log(args...)
	return nil
}

func (h logLine) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logLine{h.LogFuncs, func(inner []slog.Attr) []slog.Attr {
		return h.nest(append(slices.Clip(attrs), inner...))
	}}
}

func (h logLine) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return logLine{h.LogFuncs, func(inner []slog.Attr) []slog.Attr {
		return h.nest([]slog.Attr{{Key: name, Value: slog.GroupValue(inner...)}})
	}}
}

// setLog makes the agent's log, with redaction.
func (c *core) setLog() error {
	level := string(c.options.LogLevel)
	switch {
	case level != "" && !slices.Contains(obs.Levels, level):
		return fault.Invalid("LogLevel", "%q; must be silent, error, warn, info or debug", level)
	case c.options.Debug:
		level = "debug"
	case level == "":
		level = "silent"
	}
	to := slog.Handler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if c.options.Logger != nil {
		to = c.options.Logger.Handler()
	}
	c.log = slog.New(obs.Redacting(to, level))
	return nil
}

// loggedModel logs the sizes of requests to the model.
type loggedModel struct {
	model.Wrapped
	log   *slog.Logger
	sizes bool // Options.Debug
}

// Generate implements [model.Model].
func (m loggedModel) Generate(ctx context.Context, req model.Request, delta func(string)) (*model.Reply, error) {
	if !m.log.Enabled(ctx, slog.LevelDebug) {
		return m.Model.Generate(ctx, req, delta)
	}
	began := time.Now()
	reply, err := m.Model.Generate(ctx, req, delta)
	line := []any{"model", cmp.Or(req.Settings.Name, m.Name()), "took", time.Since(began)}
	if m.sizes {
		line = append(line, "systemBytes", len(req.System), "contentCount", len(req.Contents), "contentBytes",
			sizeOf(req),
			"toolCount", len(req.Tools), "toolBytes", sizeOfTools(req))
	}
	if err != nil {
		m.log.DebugContext(ctx, "the model did not answer", append(line, "error", err)...)
		return reply, err
	}
	m.log.DebugContext(ctx, "the model answered", append(line, "finish", reply.Finish, "callCount", len(reply.Calls),
		"promptTokens", reply.Usage.Prompt, "outputTokens", reply.Usage.Output)...)
	return reply, nil
}

func sizeOf(req model.Request) (n int) {
	for _, c := range req.Contents {
		n += len(c)
	}
	return n
}

func sizeOfTools(req model.Request) (n int) {
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return n
}
