package demomodel_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/scripts/dev/demomodel"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// shell simulates a terminal. It maps each command to its answer for the model, and each question to the user's answer.
type shell map[string]string

func printed(output string) string {
	raw, err := json.Marshal(map[string]any{"output": output, "exitCode": 0})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// task makes the model do a task, and returns its commands and its last words.
func (s shell) task(t *testing.T, prompt string) (commands []string, said string) {
	t.Helper()
	model := demomodel.Model(func() time.Time { return now })
	r := fakegemini.Request{Contents: []fakegemini.Content{{Role: "user", Parts: []fakegemini.Part{{Text: &prompt}}}},
		Tools: []fakegemini.Declaration{{Name: "run_command"}, {Name: "task_complete"}, {Name: "ask_user"}}}
	for range 20 {
		turn := model(r)
		if len(turn.Calls) == 0 {
			return commands, turn.Text
		}
		raw, err := json.Marshal(turn.Calls[0].Args)
		if err != nil {
			t.Fatal(err)
		}
		var args struct{ Command, Summary, Question string }
		if err := json.Unmarshal(raw, &args); err != nil {
			t.Fatal(err)
		}
		if turn.Calls[0].Name == "task_complete" {
			return commands, args.Summary
		}
		asked := args.Command + args.Question
		commands = append(commands, asked)
		answer, known := s[asked]
		if !known {
			t.Fatalf("%q calls for %q", prompt, asked)
		}
		r.Contents = append(r.Contents,
			fakegemini.Content{Role: "model", Parts: []fakegemini.Part{{FunctionCall: &fakegemini.FunctionCall{
				Name: turn.Calls[0].Name, Args: raw}}}},
			fakegemini.Content{Role: "user", Parts: []fakegemini.Part{{FunctionResponse: &fakegemini.FunctionResponse{
				Name: turn.Calls[0].Name, Response: json.RawMessage(answer)}}}})
	}
	t.Fatalf("%q does not end", prompt)
	return nil, ""
}

const (
	seventy      = "Filesystem Size Used Avail Use% Mounted on\n/dev/sda1 20G 14G 6G 70% /\n"
	rejects      = `{"error":"The user rejected this; it was not done. The user says: not today"}`
	whichService = "Which service? I take one name, such as nginx."
	whichPackage = "Which package? I take one name, such as htop."
	unclear      = `{"error":"It is not known whether this was done. The host was started anew."}`
)

// TestTerminalTaskReadsOutput runs the tasks on hosts whose answers differ from the demo host's.
func TestTerminalTaskReadsOutput(t *testing.T) {
	const disk = "check disk usage and clean up /tmp if over 50%"
	du := "4\t2026-11-18 08:00\t/tmp/a b/new\n90000\t2026-10-01 08:00\t/tmp/a b\n" +
		"90000\t2026-10-01 08:00\t/tmp/old.tar\n" +
		"8\t2026-10-01 08:00\t/tmp/small\n70000\t2026-11-17 08:00\t/tmp/yesterday\n250000\t2026-11-18 08:00\t/tmp\n"
	for name, c := range map[string]struct {
		prompt, commands, says string
		host                   shell
	}{
		"a name that would have to be quoted stays": {disk, "df -h|du -a --time /tmp|rm -v -- /tmp/old.tar|df -h",
			"1 old files (88 MiB) were deleted", shell{"df -h": printed(seventy), "du -a --time /tmp": printed(du),
				"rm -v -- /tmp/old.tar": printed("removed '/tmp/old.tar'\n")}},
		"a no with its reason": {disk, "df -h|du -a --time /tmp|rm -v -- /tmp/old.tar",
			"Nothing was deleted, and / stays 70% full. You rejected it. The user says: not today",
			shell{"df -h": printed(seventy), "du -a --time /tmp": printed(du), "rm -v -- /tmp/old.tar": rejects}},
		"it is not known": {disk, "df -h|du -a --time /tmp|rm -v -- /tmp/old.tar|df -h",
			"Not all was deleted from /tmp. It is not known whether this was done. The host was started anew.",
			shell{"df -h": printed(seventy), "du -a --time /tmp": printed(du), "rm -v -- /tmp/old.tar": unclear}},
		"under the limit": {"clean up /tmp if it is over 80%", "df -h", "That is not over 80%",
			shell{"df -h": printed(seventy)}},
		"a host without df": {disk, "df -h", "disk of /tmp is. It ended with exit code 127: sh: df: not found",
			shell{"df -h": `{"output":"sh: df: not found\n","exitCode":127}`}},
		"a host that cannot be reached": {disk, "df -h", "how full the disk of /tmp is. The host does not answer.",
			shell{"df -h": `{"error":"The host does not answer."}`}},
		"another folder": {"clean up /home if over 50%", "", "I clean up /tmp and /var/tmp only", shell{}},
		"a timeout": {"install htop", "which htop|apt-get install -y htop", "It was ended at its time limit.",
			shell{"which htop": `{"output":"","exitCode":1}`, "apt-get install -y htop": `{"error":"The command ` +
				`was ended.","output":"Reading","exitCode":130,"timedOut":true}`}},
		"no name, and the user names one": {"restart the service", whichService + "|systemctl is-active cron|" +
			"systemctl restart cron|systemctl is-active cron", "cron was restarted, and is active.",
			shell{whichService: `{"output":{"answer":" Cron. "}}`, "systemctl is-active cron": printed("active\n"),
				"systemctl restart cron": printed("")}},
		"no name, and the user has none": {"install $(reboot)", whichPackage, "Nothing was done: I know of no package",
			shell{whichPackage: `{"output":{"answer":"the best; reboot"}}`}},
		"no name, and no answer": {"install $(reboot)", whichPackage, "Nothing was done: I know of no package",
			shell{whichPackage: `{"error":"This has lapsed."}`}},
		"edited": {"run `ls`", "ls", "exit code 0",
			shell{"ls": `{"output":{"result":{"output":"a","exitCode":0},"executedArgs":{"command":"ls -a"},"editedBy":"user"}}`}},
		"only the disk": {"how full are the disks?", "df -h", "/ is 70% full (14G of 20G).",
			shell{"df -h": printed(seventy)}},
	} {
		t.Run(name, func(t *testing.T) {
			commands, said := c.host.task(t, c.prompt)
			if strings.Join(commands, "|") != c.commands || !strings.Contains(said, c.says) {
				t.Errorf("%q\nsaid %q", commands, said)
			}
		})
	}
}
