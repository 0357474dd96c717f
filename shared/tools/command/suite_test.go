package command_test

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/command"
)

var update = flag.Bool("update", false, "write testdata/schemas.json")

// suite tests the tool with an ordinary command.
var suite = toolstest.Suite{
	Tool: command.New(command.Options{})[command.Run],
	Args: map[string]any{"command": "touch a", "reasoning": "To have it."},
	Other: map[string]map[string]any{
		"command": {"command": "touch b"}, "reasoning": {"reasoning": "To have another."},
		"timeoutSeconds": {"timeoutSeconds": 60},
	},
	Labels: []string{"Command", "Ended after", "The assistant says"},
	Texts:  map[string]string{"command": "Command", "reasoning": "The assistant says"},
	Previews: map[string]toolstest.Shown{
		"as it is": {Want: []string{"Run a command", "Command: touch a", "30 seconds",
			"The assistant says: To have it."}},
		"its time": {Change: map[string]any{"timeoutSeconds": 900}, Want: []string{"900 seconds"}},
		"all of its lines": {Change: map[string]any{"command": "touch a &&\n\ttouch b"},
			Want: []string{"touch a &&\n\ttouch b"}},
		"a reasoning that hides something": {Change: map[string]any{"reasoning": "To look.\u202egnp.exe"},
			Want: []string{"⟨U+202E⟩", "! The assistant says: there are characters that cannot be seen"}},
		"a command that only looks, quoted anew": {Change: map[string]any{"command": `ls  "-l"   '/var/log'`},
			Want: []string{"Command: ls -l /var/log"}},
	},
	Refused: map[string]toolstest.Refused{
		"blank":                  {Change: map[string]any{"command": " \n"}, Field: "command"},
		"empty":                  {Change: map[string]any{"command": ""}, Field: "command"},
		"too long":               {Change: map[string]any{"command": strings.Repeat("x", 8<<10+1)}, Field: "command"},
		"NUL":                    {Change: map[string]any{"command": "ls\x00"}, Field: "command"},
		"an escape":              {Change: map[string]any{"command": "ls \x1b[2K"}, Field: "command"},
		"a change of direction":  {Change: map[string]any{"command": "ls \u202etxt.x"}, Field: "command"},
		"a zero-width space":     {Change: map[string]any{"command": "l\u200bs"}, Field: "command"},
		"a no-break space":       {Change: map[string]any{"command": "rm\u00a0-rf"}, Field: "command"},
		"a full-width letter":    {Change: map[string]any{"command": "ｌs"}, Field: "command"},
		"what no shell can read": {Change: map[string]any{"command": "echo 'a"}, Field: "command"},
		"only a comment":         {Change: map[string]any{"command": "# ls"}, Field: "command"},
		"no reason":              {Change: map[string]any{"reasoning": nil}, Field: "reasoning"},
		"a blank reason":         {Change: map[string]any{"reasoning": "\u200b "}, Field: "reasoning"},
		"no time":                {Change: map[string]any{"timeoutSeconds": 0}, Field: "timeoutSeconds"},
		"too much time":          {Change: map[string]any{"timeoutSeconds": 901}, Field: "timeoutSeconds"},
		"a place of its own":     {Change: map[string]any{"cwd": "/"}, Field: "cwd"},
		"a host of its own":      {Change: map[string]any{"hostId": "x"}, Field: "hostId"},
	},
}

func TestSuite(t *testing.T) { suite.Run(t) }

// TestSchemas compares the tools' declarations, as Gemini receives them, with a file (002-04).
func TestSchemas(t *testing.T) {
	type declared struct {
		Name, Description string
		Schema            json.RawMessage
	}
	var all []declared
	set := command.New(command.Options{})
	for _, name := range set.Names() {
		all = append(all, declared{name, set[name].Description, set[name].Schema})
	}
	got, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile("testdata/schemas.json", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/schemas.json")
	if err != nil || string(want) != string(got) {
		t.Errorf("%v; go test -update writes it:\n%s", err, got)
	}
}
