package infra_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAlertsLogFilters checks that the log filters of alerts match the lines that the code logs, and that these are
// warnings or errors: other lines are not in the log _Default.
func TestAlertsLogFilters(t *testing.T) {
	tf, err := os.ReadFile("../terraform/modules/agent/alerts.tf")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`jsonPayload\.counter=\\"(\w+)\\"`).FindAllSubmatch(tf, -1)
	if len(found) < 3 {
		t.Fatalf("%d filters found", len(found))
	}
	var source strings.Builder
	for _, room := range []string{"engine/loop", "engine/unit", "engine/outbox", "engine/effect",
		"engine/approval", "engine/quota", "api", "receipts/translog"} {
		files, err := filepath.Glob("../shared/" + room + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal(room, err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(b)
		}
	}
	for _, c := range found {
		lines := regexp.MustCompile(`Log\.(\w+)\((?:[^"]*"[^"]*")+?,\s*"counter", "`+string(c[1])+`"`).FindAllStringSubmatch(
			source.String(), -1)
		if len(lines) == 0 {
			t.Errorf("an alert filters by %s, which no code logs", c[1])
		}
		for _, line := range lines {
			if line[1] != "WarnContext" && line[1] != "ErrorContext" {
				t.Errorf("an alert filters by %s, which is logged by %s; want a warning or an error", c[1], line[1])
			}
		}
	}
}
