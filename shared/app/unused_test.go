package app_test

import (
	"strings"
	"testing"
)

// TestDatabaseURLUnused checks that the start logs once that STORE is used instead of DATABASE_URL (004-21), and
// nothing of its value.
func TestDatabaseURLUnused(t *testing.T) {
	w := deploy(t, "DATABASE_URL=postgres://agent:CANARY@db.example.com/agent")
	if log := w.Logs.String(); strings.Count(log, "DATABASE_URL") != 1 || !strings.Contains(log, `"STORE":"embedded"`) ||
		strings.Contains(log, "CANARY") || strings.Contains(log, "db.example.com") {
		t.Errorf("the log is %s", log)
	}
	if log := deploy(t).Logs.String(); strings.Contains(log, "DATABASE_URL") {
		t.Errorf("without it the log is %s", log)
	}
}
