package app_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
)

// TestMisspeltSettingLogged checks that a misspelt setting is logged by name, never with its value.
func TestMisspeltSettingLogged(t *testing.T) {
	cfg, err := config.Load(func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	app.WarnOfNearMisses(cfg, []string{"GEMINI_APIKEY=CANARY", "PATH=/bin"}, slog.New(slog.NewTextHandler(&log, nil)))
	if s := log.String(); strings.Count(s, "level=WARN") != 1 || strings.Contains(s, "CANARY") ||
		!strings.Contains(s, "GEMINI_APIKEY is not a setting and has no effect; did you mean GEMINI_API_KEY?") {
		t.Error(s)
	}
}
