package infra_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAlertsLogFilters checks that the log filters of alerts match the lines that the code logs.
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
		"engine/approval", "engine/quota"} {
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
		if !strings.Contains(source.String(), `"counter", "`+string(c[1])+`"`) {
			t.Errorf("an alert filters by %s, which no code logs", c[1])
		}
	}
}
