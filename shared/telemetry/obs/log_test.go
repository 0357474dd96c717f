package obs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// logged returns the one line that log writes, as JSON.
func logged(t testing.TB, log func(*slog.Logger)) (line map[string]any, text string) {
	t.Helper()
	var out bytes.Buffer
	log(obs.New(&out, obs.Options{Level: "debug", Release: "r1", Service: "run", Project: "p1"}))
	text = out.String()
	if strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") {
		t.Fatalf("not one line: %q", text)
	}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return line, text
}

// has checks that a line has these values.
func has(t *testing.T, line, want map[string]any) {
	t.Helper()
	got := map[string]any{}
	for name := range want {
		got[name] = line[name]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the line %v differs (-want +got):\n%s", line, diff)
	}
}

func TestFields(t *testing.T) {
	line, _ := logged(t, func(l *slog.Logger) {
		l.With("a", 1).WithGroup("g").Warn("hello", "b", 2, "took", 1500*time.Millisecond)
	})
	has(t, line, map[string]any{"severity": "WARNING", "message": "hello", "a": 1.0})
	if g, _ := line["g"].(map[string]any); g["b"] != 2.0 {
		t.Errorf("the group is %v", line["g"])
	}
	if _, err := time.Parse(time.RFC3339Nano, fmt.Sprint(line["time"])); err != nil {
		t.Error(err)
	}
	labels, _ := line["logging.googleapis.com/labels"].(map[string]any)
	if labels["release"] != "r1" || labels["service"] != "run" {
		t.Errorf("the labels are %v, and must be at the top, outside the group", labels)
	}
	for level, want := range map[slog.Level]string{slog.LevelDebug: "DEBUG", slog.LevelInfo: "INFO",
		slog.LevelError: "ERROR", 12: "ERROR"} {
		line, _ := logged(t, func(l *slog.Logger) { l.Log(context.Background(), level, "m") })
		if line["severity"] != want {
			t.Errorf("level %v is %v, want %s", level, line["severity"], want)
		}
	}
}

func TestLevels(t *testing.T) {
	for name, want := range map[string]string{"silent": "", "error": "E", "warn": "WE", "info": "IWE", "debug": "DIWE",
		"": "IWE"} {
		var out bytes.Buffer
		l := obs.New(&out, obs.Options{Level: name})
		l.Debug("m")
		l.Info("m")
		l.Warn("m")
		l.Error("m")
		got := ""
		for line := range strings.Lines(out.String()) {
			var v struct{ Severity string }
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatal(err)
			}
			got += v.Severity[:1]
		}
		if got != want {
			t.Errorf("%s logs %q, want %q", name, got, want)
		}
	}
}

type private struct{ Name, Password string }

type valuer struct{}

func (valuer) LogValue() slog.Value {
	return slog.GroupValue(slog.String("token", canary), slog.Int("promptTokens", 7))
}

type nobody struct{ name string }

func (n *nobody) String() string { return n.name }

func TestLogWithoutPrivateValues(t *testing.T) {
	tests := map[string][]any{
		"by key": {"subject", canary, "Bcc", canary, "access_token", canary, "prompt", canary,
			"edited-args", canary, "E-Mail", canary},
		"of a link": {"code", canary, "state", canary, "callback",
			map[string]string{"code": canary, "state": canary}},
		"a code that is not ours": {"code", fault.Code("ya29." + canary)},
		"by look":                 {"note", "ya29." + canary},
		"an error":                {"error", fmt.Errorf("call: %w", errors.New("lookup user:"+canary+"@host"))},
		"an error under a key":    {"secret", errors.New(canary)},
		"in a group":              {slog.Group("outer", slog.Group("inner", slog.String("body", canary)))},
		"in a group with a key":   {slog.Group("args", slog.String("x", canary), slog.Any("y", []string{canary}))},
		"in a struct":             {"user", private{"n", canary}},
		"in a map": {"m",
			map[string]any{"list": []any{map[string]any{"cc": canary}}, "k ghp_" + canary: "v"}},
		"in a list under a key":    {"recipients", []string{canary, canary}},
		"bytes":                    {"b", []byte(canary), "r", json.RawMessage(`"` + canary + `"`)},
		"a LogValuer":              {"v", valuer{}},
		"a Stringer":               {"password", &nobody{canary}},
		"as the key":               {"Bearer " + canary, 1},
		"a group nested very deep": {deep(40)},
	}
	for name, attrs := range tests {
		t.Run(name, func(t *testing.T) {
			for place, log := range map[string]func(*slog.Logger){
				"line":  func(l *slog.Logger) { l.Info("m", attrs...) },
				"with":  func(l *slog.Logger) { l.With(attrs...).Info("m") },
				"group": func(l *slog.Logger) { l.WithGroup("g").With(attrs...).WithGroup("h").Info("m", "x", 1) },
			} {
				if _, text := logged(t, log); strings.Contains(text, canary) {
					t.Errorf("%s: %s", place, text)
				}
			}
		})
	}
	t.Run("a sensitive group around the line", func(t *testing.T) {
		if _, text := logged(t, func(l *slog.Logger) { l.WithGroup("args").Info("m", "x", canary) }); strings.Contains(
			text, canary) {
			t.Error(text)
		}
	})
	t.Run("the message", func(t *testing.T) {
		if _, text := logged(t, func(
			l *slog.Logger) {
			l.Info("mail to " + canary + "@example.com")
		}); strings.Contains(text, canary) {
			t.Error(text)
		}
	})
}

func deep(n int) slog.Attr {
	a := slog.String("x", canary)
	for range n {
		a = slog.Group("g", a)
	}
	return a
}

func TestLogOfUsefulValues(t *testing.T) {
	line, _ := logged(t, func(l *slog.Logger) {
		l.Info("m", "runId", "r-1", "promptTokens", 12, "emailVerified", true, "v", valuer{}, "n", nil, "none",
			(*nobody)(nil), "bad", func() {}, "f", 1.5, "code", fault.CodeStaleView, "m", map[string]int{"a": 1})
	})
	has(t, line, map[string]any{"runId": "r-1", "promptTokens": 12.0, "emailVerified": true, "f": 1.5,
		"code": "stale_view", "n": nil, "none": "[*obs_test.nobody cannot be logged]",
		"bad": "[func() cannot be logged]"})
}

func TestLogFieldsNotForged(t *testing.T) {
	line, text := logged(t, func(l *slog.Logger) {
		l.Info("line1\n{\"severity\":\"CRITICAL\",\"message\":\"forged\"}", // SE-002
			"severity", "CRITICAL", "message", "forged", "msg", "forged", "level", "forged", "time", "never",
			"logging.googleapis.com/labels", "forged", "httpRequest", "forged", "x", "\",\"severity\":\"ALERT")
	})
	has(t, line, map[string]any{"severity": "INFO", "severity_": "CRITICAL"})
	if !strings.HasPrefix(fmt.Sprint(line["message"]), "line1\n{") {
		t.Error(text)
	}
	if _, ok := line["logging.googleapis.com/labels"].(map[string]any); !ok || line["httpRequest"] != nil {
		t.Error(text)
	}
	for _, key := range []string{"severity", "message", "time", "logging.googleapis.com/labels"} {
		if strings.Count(text, `"`+key+`":`) != 1 {
			t.Errorf("%s does not stand once: %s", key, text)
		}
	}
}

// FuzzLine checks that any input becomes one line of valid JSON without the planted token.
func FuzzLine(f *testing.F) {
	f.Add("message", "key", "value")
	f.Add("a\nb", "severity", "\u2028\u0000")
	f.Add("\xff\xfe", "\xff", "\"}\n{")
	f.Add("{{}}", "", "%!s(MISSING)")
	f.Fuzz(func(t *testing.T, message, key, value string) {
		if strings.Contains(message+key+value, canary) {
			return
		}
		for name, secret := range map[string]string{"look": "ya29." + canary, "header": "Bearer " + canary} {
			_, text := logged(t, func(l *slog.Logger) {
				l.WithGroup(key).With(key, value+secret).Error(message+secret, key+secret, value, "error",
					errors.New(value+secret), "map", map[string]string{key + secret: value + secret})
			})
			if strings.Contains(text, canary) {
				t.Errorf("%s came through: %s", name, text)
			}
		}
	})
}
