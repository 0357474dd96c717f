package obs_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// TestRedacting checks that the other handler never receives a secret, in whatever part of a line it is.
func TestRedacting(t *testing.T) {
	for name, log := range map[string]func(*slog.Logger){
		"message": func(l *slog.Logger) { l.Info("Bearer " + canary) },
		"attribute": func(l *slog.Logger) {
			l.Info("m", "prompt", canary, "error",
				errors.New("token="+canary))
		},
		"with":  func(l *slog.Logger) { l.With("subject", canary, "x", "ya29."+canary).Info("m") },
		"group": func(l *slog.Logger) { l.WithGroup("secret").Info("m", "x", canary) },
		"with in group": func(l *slog.Logger) {
			l.WithGroup("secret").With("x", canary).WithGroup("in").Info("m",
				"x", canary)
		},
		"group's name":     func(l *slog.Logger) { l.WithGroup("ya29."+canary).Info("m", "x", 1) },
		"attribute's name": func(l *slog.Logger) { l.Info("m", "ya29."+canary, 1) },
		"value":            func(l *slog.Logger) { l.Info("m", "v", private{"name", canary}, "w", valuer{}) },
	} {
		for format, handler := range map[string]func(*bytes.Buffer) slog.Handler{
			"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
			"json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
		} {
			var out bytes.Buffer
			log(slog.New(obs.Redacting(handler(&out), "debug")))
			if text := out.String(); strings.Contains(text, canary) || strings.Count(text, "\n") != 1 {
				t.Errorf("%s, %s: %s", name, format, text)
			}
		}
	}
}

func TestRedactingLevel(t *testing.T) {
	for level, want := range map[string]string{"silent": "", "error": "e", "warn": "we", "info": "iwe",
		"debug": "diwe"} {
		var out bytes.Buffer
		l := slog.New(obs.Redacting(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}),
			level)).WithGroup("").With("a", 1)
		l.Debug("d")
		l.Info("i")
		l.Warn("w")
		l.Error("e")
		got := ""
		for line := range strings.Lines(out.String()) {
			_, after, _ := strings.Cut(line, "msg=")
			got += after[:1]
		}
		if got != want {
			t.Errorf("%s hands on %q, want %q", level, got, want)
		}
	}
	if obs.Redacting(slog.NewTextHandler(&bytes.Buffer{}, nil), "debug").Enabled(context.Background(),
		slog.LevelDebug) {
		t.Error("the other handler's level counts, too")
	}
}
