package countersign_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/countersign"
)

// lines collects the log lines, by the called method.
type lines struct {
	mu  sync.Mutex
	all map[string][]string
}

func (l *lines) method(name string) func(...any) {
	return func(args ...any) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.all == nil {
			l.all = map[string][]string{}
		}
		l.all[name] = append(l.all[name], fmt.Sprintln(args...))
	}
}

func (l *lines) funcs() countersign.LogFuncs {
	return countersign.LogFuncs{Log: l.method("log"), Warn: l.method("warn"), Error: l.method("error"),
		Debug: l.method("debug")}
}

func (l *lines) methods() (names []string) {
	for _, name := range []string{"error", "warn", "log", "debug"} {
		if len(l.all[name]) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// eventful is a run with an event of each log level: a tool fails, and the outcome of an effect is unknown.
func eventful(t *testing.T, o countersign.Options, secret string) {
	t.Helper()
	p := &post{next: []error{countersign.Uncertain(errors.New("dial tcp: lookup user:" + secret + "@host"))}}
	o.Provider = newScript(call("get_weather", map[string]any{"city": secret}), mailTo(secret+"@example.com"),
		say("Done: "+secret))
	o.Tools = append(p.tools(), getWeather)
	o.Effects = countersign.AutoApprove
	if _, err := newAgent(t, o).NewSession().Send(t.Context(), "my password is "+secret); err != nil {
		t.Fatal(err)
	}
}

func TestLogLevels(t *testing.T) {
	for level, want := range map[countersign.LogLevel][]string{
		"": nil, "silent": nil, "error": {"error"}, "warn": {"error", "warn"}, "info": {"error", "warn", "log"},
		"debug": {"error", "warn", "log", "debug"},
	} {
		var l lines
		eventful(t, countersign.Options{LogLevel: level, Logger: slog.New(l.funcs())}, "x")
		if got := l.methods(); !slices.Equal(got, want) {
			t.Errorf("level %q calls %q, want %q: %q", level, got, want, l.all)
		}
	}
	for name, without := range map[string]func(*countersign.LogFuncs){
		"error": func(f *countersign.LogFuncs) { f.Error = nil },
		"warn":  func(f *countersign.LogFuncs) { f.Warn = nil },
		"log":   func(f *countersign.LogFuncs) { f.Log = nil },
		"debug": func(f *countersign.LogFuncs) { f.Debug = nil },
	} {
		var l lines
		funcs := l.funcs()
		without(&funcs)
		eventful(t, countersign.Options{LogLevel: "debug", Logger: slog.New(funcs)}, "x")
		want := slices.DeleteFunc([]string{"error", "warn", "log", "debug"}, func(s string) bool { return s == name })
		if got := l.methods(); !slices.Equal(got, want) {
			t.Errorf("without %s it calls %q", name, got)
		}
	}
	eventful(t, countersign.Options{LogLevel: "debug", Logger: slog.New(countersign.LogFuncs{})}, "x")
}

func TestDebug(t *testing.T) {
	var with, without lines
	eventful(t, countersign.Options{Debug: true, Logger: slog.New(with.funcs())}, "x")
	eventful(t, countersign.Options{LogLevel: "debug", Logger: slog.New(without.funcs())}, "x")
	asked := func(l *lines) (all []string) {
		for _, line := range l.all["debug"] {
			if strings.HasPrefix(line, "the model answered ") {
				all = append(all, line)
			}
		}
		return all
	}
	if got := asked(&with); len(got) < 2 || !strings.Contains(got[0], " contentCount=1 contentBytes=") ||
		!strings.Contains(got[0], " toolCount=2 toolBytes=") {
		t.Errorf("%q", got)
	}
	if got := asked(&without); len(got) < 2 || strings.Contains(got[0], "contentBytes") {
		t.Errorf("%q", got)
	}
}

// No log line contains a prompt, an argument or an answer, whatever the handler.
func TestLogWithoutPrivateData(t *testing.T) {
	const canary = "hunter2-CANARY"
	var text, json bytes.Buffer
	var l lines
	for _, h := range []slog.Handler{slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug,
		AddSource: true}),
		slog.NewJSONHandler(&json, &slog.HandlerOptions{Level: slog.LevelDebug}), l.funcs()} {
		eventful(t, countersign.Options{Debug: true, Logger: slog.New(h)}, canary)
	}
	for name, got := range map[string]string{"text": text.String(), "json": json.String(),
		"functions": fmt.Sprint(l.all)} {
		if strings.Contains(got, canary) || len(got) < 200 {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Without a Logger lines go to stderr; never to stdout, nor to the program's own loggers.
func TestLogToStderr(t *testing.T) {
	var defaults bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&defaults, nil)))
	defer slog.SetDefault(before)
	stdout, stderr := os.Stdout, os.Stderr
	defer func() { os.Stdout, os.Stderr = stdout, stderr }()
	out, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	errs, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer errs.Close()
	os.Stdout, os.Stderr = out, errs
	eventful(t, countersign.Options{LogLevel: "info"}, "x")
	eventful(t, countersign.Options{}, "silent")
	os.Stdout, os.Stderr = stdout, stderr
	read := func(f *os.File) string {
		data, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if got := read(errs); !strings.Contains(got, `msg="a run has come to rest" sessionId=`) || strings.Count(got,
		"come to rest") != 1 {
		t.Errorf("stderr: %s", got)
	}
	if got := read(out) + defaults.String(); got != "" {
		t.Errorf("elsewhere: %s", got)
	}
}

func TestLogFuncs(t *testing.T) {
	var got []any
	f := countersign.LogFuncs{Warn: func(args ...any) { got = args }}
	log := slog.New(f).With("a", 1).WithGroup("g").WithGroup("").With("b", 2)
	log.Warn("m", "c", 3)
	if want := "[m a=1 g=[b=2 c=3]]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	if a, ok := got[1].(slog.Attr); !ok || a.Key != "a" {
		t.Errorf("%T", got[1])
	}
	got = nil
	log.Error("m")
	log.Info("m")
	if got != nil || f.Enabled(context.Background(), slog.LevelInfo) || !f.Enabled(context.Background(),
		slog.LevelWarn+1) {
		t.Errorf("a nil function is called: %v", got)
	}
}

func ExampleLogFuncs() {
	logger := slog.New(countersign.LogFuncs{
		Warn:  func(args ...any) { fmt.Println(append([]any{"warning:"}, args...)...) },
		Error: func(args ...any) { fmt.Println(append([]any{"error:"}, args...)...) },
	})
	logger.Warn("a tool is slow", "tool", "get_weather")
	logger.Info("not asked for")
	// Output: warning: a tool is slow tool=get_weather
}
