// Package obs provides logging for operators. Log lines have the fields of Cloud Logging, with a request ID and trace
// IDs in each, and one line for each request at the edge. Private data is redacted by its key and by its form
// ([Redact]), also in nested groups, errors and messages. Library code does not log; edges do.
//
// Traces are propagated, not created. Cloud Run's front end starts the trace, and log lines contain its IDs, so that
// Cloud Trace and Cloud Logging show the lines under the request.
package obs

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"math"
	"runtime/debug"
	"slices"
	"strings"
)

// silent is above all other levels.
const silent = slog.Level(math.MaxInt32)

// Levels lists the values of LOG_LEVEL (contract §3).
var Levels = []string{"silent", "error", "warn", "info", "debug"}

var levels = map[string]slog.Level{
	"silent": silent, "error": slog.LevelError, "warn": slog.LevelWarn, "info": slog.LevelInfo,
	"debug": slog.LevelDebug,
}

// Options configures a logger.
type Options struct {
	Level   string // one of Levels; anything else is info
	Release string // names the build; empty: BuildRelease()
	Service string // the function (K_SERVICE, or its local name); may be empty
	Project string // the Google Cloud project, for the trace's full name; may be empty
}

// New returns a logger that writes one JSON object per line
// (https://docs.cloud.google.com/logging/docs/structured-logging).
func New(w io.Writer, o Options) *slog.Logger {
	if o.Release == "" {
		o.Release = BuildRelease()
	}
	// info is the zero level
	base := slog.NewJSONHandler(w, &slog.HandlerOptions{Level: levels[o.Level], ReplaceAttr: rename})
	return slog.New(&handler{base: base, options: o, nest: func(a []slog.Attr) []slog.Attr { return a }})
}

// BuildRelease returns the commit that the program was built from, or its module version, as recorded by the Go tool.
// It returns "unknown" if neither was recorded.
func BuildRelease() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	return cmp.Or(info.Main.Version, "unknown")
}

// handler redacts, and adds the attributes of the context. It nests groups itself, because trace and labels must be at
// the top level of the line, whatever groups the logger has.
type handler struct {
	base    slog.Handler
	options Options
	nest    func([]slog.Attr) []slog.Attr // adds the attributes of With and the groups of WithGroup
}

func (h *handler) Enabled(ctx context.Context, l slog.Level) bool { return h.base.Enabled(ctx, l) }

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	outer := *h
	return &handler{h.base, h.options,
		func(inner []slog.Attr) []slog.Attr { return outer.nest(append(slices.Clip(attrs), inner...)) }}
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	outer := *h
	return &handler{h.base, h.options, func(inner []slog.Attr) []slog.Attr {
		return outer.nest([]slog.Attr{{Key: name, Value: slog.GroupValue(inner...)}})
	}}
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	attrs := make([]slog.Attr, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a)
		return true
	})
	line := slog.NewRecord(r.Time, r.Level, Redact(r.Message), r.PC)
	for _, a := range clean(h.nest(attrs), false, 0) {
		if reserved[a.Key] || strings.HasPrefix(a.Key, "logging.googleapis.com/") {
			a.Key += "_"
		}
		line.AddAttrs(a)
	}
	line.AddAttrs(h.context(ctx)...)
	return h.base.Handle(ctx, line)
}

// reserved lists the top-level keys that a caller must not set.
var reserved = map[string]bool{
	slog.TimeKey: true, slog.LevelKey: true, slog.MessageKey: true, slog.SourceKey: true, "severity": true,
	"message": true, "httpRequest": true,
}

// context returns the attributes of the line's context: labels, the trace, and at the end of a request httpRequest.
func (h *handler) context(ctx context.Context) []slog.Attr {
	labels := []any{}
	add := func(name, value string) {
		if value != "" {
			labels = append(labels, slog.String(name, value))
		}
	}
	add("release", h.options.Release)
	add("service", h.options.Service)
	r := from(ctx)
	if r == nil {
		return []slog.Attr{slog.Group("logging.googleapis.com/labels", labels...)}
	}
	add("requestId", r.id)
	attrs := []slog.Attr{slog.Group("logging.googleapis.com/labels", labels...)}
	if t := r.trace.Load(); t != nil {
		attrs = append(attrs, t.attrs(h.options.Project)...)
	}
	if r.done != nil {
		attrs = append(attrs, *r.done)
	}
	return attrs
}

// rename renames the handler's own fields to Cloud Logging's.
func rename(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.LevelKey:
		if level, ok := a.Value.Any().(slog.Level); ok {
			return slog.String("severity", severity(level))
		}
	case slog.MessageKey:
		a.Key = "message"
	}
	return a
}

func severity(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "ERROR"
	case l >= slog.LevelWarn:
		return "WARNING"
	case l >= slog.LevelInfo:
		return "INFO"
	}
	return "DEBUG"
}
