package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var commandIn = regexp.MustCompile("`go run \\./scripts/ops ([^`]+)`")

// TestRunbookCommands runs each command of a runbook, on a deployment with a run that waits.
func TestRunbookCommands(t *testing.T) {
	files, err := filepath.Glob("../../infra/runbooks/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d runbooks, %v", len(files), err)
	}
	w := newDeployment(t)
	run := w.mail(false)
	with := strings.NewReplacer("RUN", run, "USER", "ana", "TIME", "2026-11-29T09:30:00Z")
	topics := newDeadLetterTopic(t, "agent-resume", resume)
	events := newDeadLetterTopic(t, "agent-events", told)
	ran := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range commandIn.FindAllStringSubmatch(string(text), -1) {
			ran++
			args := strings.Fields(with.Replace(m[1]))
			switch {
			case args[0] == "restore": // refuses a store in use
				if _, _, err := w.ops(args...); err == nil || !strings.Contains(err.Error(), "not a copy") {
					t.Errorf("%s: %v of a store in use: %v", file, args, err)
				}
			case args[0] == "rotate": // a key of Cloud KMS; TestRotateDecisionKey rotates it
				_, _, err := w.ops(args...)
				if err == nil || !strings.Contains(err.Error(), "DECISION_KMS_KEY is not set") {
					t.Errorf("%s: %v without a key: %v", file, args, err)
				}
			case args[0] == "dead-letters" && strings.Contains(m[1], "-events"):
				events.ops([]string{"0 "}, args[1:]...)
			case args[0] == "dead-letters":
				topics.ops([]string{"0 "}, args[1:]...)
			default:
				w.prints(nil, args...)
			}
		}
	}
	if ran < 10 {
		t.Errorf("%d commands were found", ran)
	}
}
