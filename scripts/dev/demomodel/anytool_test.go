package demomodel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/scripts/dev/demomodel"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// ownTools are tools without a rule: a user's own tool, declared actions, and some with other schemas.
var ownTools = map[string]fakegemini.Declaration{
	"note_write": {Description: "Writes a note down.", Parameters: json.RawMessage(
		`{"type":"object","properties":{"text":{"type":"string","description":"what to write down"}},"required":["text"]}`)},
	"shout": {Description: "Says something loudly.", Parameters: json.RawMessage(
		`{"type":"object","properties":{"text":{"type":"string"},"times":{"type":"integer"}},"required":["text"]}`)},
	"money_transfer": {Description: "Moves money to another account.", Parameters: json.RawMessage(`{"type":"object",
		"properties":{"to":{"type":"string"},"amount":{"type":"number"},"currency":{"type":"string","enum":["EUR","USD"]},
		"urgent":{"type":"boolean"},"tags":{"type":"array","items":{"type":"string"}}},"required":["to","amount"]}`)},
	"action_findOrder": {Description: "Find an order by its number.", Parameters: json.RawMessage(
		`{"type":"object","properties":{"orderId":{"type":"string"}},"required":["orderId"]}`)},
	"list_files":  {Description: "Lists the files of a folder.", Parameters: json.RawMessage(nothing)},
	"run_command": {Description: "Runs a shell command.", Parameters: json.RawMessage(commanded)},
	"gmail_send":  {Description: "Sends a mail.", Parameters: json.RawMessage(nothing)},
}

const commanded = `{"type":["object"],"properties":{"command":{"type":["string","null"]}},"required":["command"]}`

func newOwn(t *testing.T) *talk {
	tools := map[string]string{}
	for name, d := range ownTools {
		tools[name] = string(d.Parameters)
	}
	c := newTalk(t, tools, "{}")
	c.described = func(name string) string { return ownTools[name].Description }
	return c
}

func TestCallAnyTool(t *testing.T) {
	for prompt, want := range map[string]string{
		`use note_write with {"text":"a {b} c"}`:                    `note_write {"text":"a {b} c"}`,
		"call shout with text hello":                                `shout {"text":"hello"}`,
		"call shout with text hello there and times 3":              `shout {"text":"hello there","times":3}`,
		"shout text: “hello, and text: x”, times: two":              `shout {"text":"hello, and text: x","times":2}`,
		"shout hello there":                                         `shout {"text":"hello there"}`,
		"Please shout: Hello there!":                                `shout {"text":"Hello there!"}`,
		"write a note: the demo is at ten":                          `note_write {"text":"the demo is at ten"}`,
		"could you write a note that the demo is at ten?":           `note_write {"text":"the demo is at ten"}`,
		"note that the demo is at ten":                              `note_write {"text":"the demo is at ten"}`,
		"write down buy milk\nand eggs":                             `note_write {"text":"buy milk\nand eggs"}`,
		"note_write the demo is at ten":                             `note_write {"text":"the demo is at ten"}`,
		"transfer money to ana, amount 20":                          `money_transfer {"amount":20,"to":"ana"}`,
		"transfer money: 12.50 EUR to ana":                          `money_transfer {"amount":12.50,"currency":"EUR","to":"ana"}`,
		"use money_transfer with to ana, amount = 5 and urgent yes": `money_transfer {"amount":5,"to":"ana","urgent":true}`,
		"use money_transfer with to: ana, amount: 5, tags: a, b":    `money_transfer {"amount":5,"tags":["a","b"],"to":"ana"}`,
		"find order 17":                                             `action_findOrder {"orderId":"17"}`,
		"show me the order 17":                                      `action_findOrder {"orderId":"17"}`,
		"list the files":                                            `list_files {}`,
		"what are the files? list them":                             `list_files {}`,
		"run the command `ls -la /`":                                `run_command {"command":"ls -la /"}`,
		"use run_command with command ls -la":                       `run_command {"command":"ls -la"}`,
		`use gmail_send with {"to":["a@b.c"]}`:                      `gmail_send {"to":["a@b.c"]}`,
		"email ana@example.com that I write notes":                  `gmail_send {"to":["ana@example.com"],"subject":"I write notes","body":"I write notes."}`,
		"don't shout":       "",
		"hello":             "",
		"delete my account": "",
	} {
		t.Run(prompt, func(t *testing.T) {
			calls, words := newOwn(t).say(prompt)
			if got := inOneLine(calls); got != want || want == "" && !strings.Contains(words, "Try one of these:\n- ") {
				t.Errorf("got  %s %q\nwant %s", got, words, want)
			}
		})
	}
}

func inOneLine(calls []fakegemini.FunctionCall) string {
	said := make([]string, len(calls))
	for i, c := range calls {
		said[i] = fmt.Sprintf("%s %s", c.Name, c.Args)
	}
	return strings.Join(said, ", ")
}

func TestReportAnyResult(t *testing.T) {
	for response, want := range map[string]string{
		`{"output":{"text":"HELLO"}}`:                          "“shout” was done. It answered: HELLO",
		`{"output":{"a":1,"b":[true]}}`:                        `“shout” was done. It answered: {"a":1,"b":[true]}`,
		`{"output":["a","b"]}`:                                 `“shout” was done. It answered: ["a","b"]`,
		`{"output":{}}`:                                        "“shout” was done.",
		`{"error":"The user rejected this; it was not done."}`: "“shout” was not done: you rejected it.",
		`{"error":"The user took the approval of this back before it began; it was not done."}`: "“shout” was " +
			"not done: you took your approval back.",
		`{"error":"text: too long"}`: "“shout” was not done. text: too long",
		`{"error":"It is not known whether this was done. Nobody answers."}`: "It is not known whether “shout” was " +
			"done. Nobody answers.",
	} {
		if _, words := newOwn(t).play("shout hello", map[string]string{"shout": response}); words != want {
			t.Errorf("%s:\nsaid %s\nwant %s", response, words, want)
		}
	}
}

func TestAskForMissingArguments(t *testing.T) {
	c := newOwn(t)
	if calls, words := c.say("write a note"); len(calls) > 0 ||
		!strings.HasPrefix(words, "“note_write” needs text: what to write down.") {
		t.Fatalf("called %v and said %q", calls, words)
	}
	if calls, words := c.say("the demo is at ten"); inOneLine(calls) != `note_write {"text":"the demo is at ten"}` {
		t.Errorf("called %v and said %q", calls, words)
	}
}

// TestCallingMode checks that the mode of function calling and the allowed names are obeyed, whatever the prompt says.
func TestCallingMode(t *testing.T) {
	for _, c := range []struct {
		mode    string
		allowed []string
		prompt  string
		want    string
	}{
		{"ANY", nil, "shout hello", `shout {"text":"hello"}`},
		{"ANY", []string{"shout"}, "what a fine day", `shout {"text":"what a fine day"}`},
		{"ANY", []string{"money_transfer"}, "hello", `money_transfer {"amount":1,"to":"hello"}`},
		{"ANY", []string{"note_write"}, "email ana@example.com that I am late",
			`note_write {"text":"email ana@example.com that I am late"}`},
		{"VALIDATED", []string{"note_write"}, "shout hello", ""},
		{"VALIDATED", []string{"note_write"}, "email ana@example.com that I am late", ""},
		{"NONE", nil, "shout hello", ""},
		{"AUTO", nil, "shout hello", `shout {"text":"hello"}`},
	} {
		own := newOwn(t)
		own.mode, own.allowed = c.mode, c.allowed
		if calls, words := own.say(c.prompt); inOneLine(calls) != c.want || (c.want == "") != (words != "") {
			t.Errorf("%s %v %q: called %s and said %q", c.mode, c.allowed, c.prompt, inOneLine(calls), words)
		}
	}
}

// FuzzAnyTool checks that every prompt gets an answer, and that a forced call has all required arguments.
func FuzzAnyTool(f *testing.F) {
	for _, s := range []string{"use note_write with {", "transfer order id 5, order: 6 and order id: x", "shout",
		"write a",
		"call shout with text: , times: many", "run the `", "use x with order is order id is",
		"transfer money 5 EUR to, tags"} {
		f.Add(s)
	}
	var tools []fakegemini.Declaration
	for name, d := range ownTools {
		tools = append(tools, fakegemini.Declaration{Name: name, Description: d.Description, Parameters: d.Parameters})
	}
	tools = append(tools, fakegemini.Declaration{Name: "order", Description: "Orders", Parameters: json.RawMessage(
		`{"type":"object","properties":{"order":{"type":"string"},"orderId":{"type":"integer"},"id":{}},"required":["order","id"]}`)})
	answer := demomodel.Model(func() time.Time { return now })
	f.Fuzz(func(t *testing.T, prompt string) {
		r := fakegemini.Request{Tools: tools,
			Contents: []fakegemini.Content{{Role: "user", Parts: []fakegemini.Part{{Text: &prompt}}}}}
		if turn := answer(r); (turn.Text == "") == (len(turn.Calls) == 0) {
			t.Errorf("%q: words or calls are due: %+v", prompt, turn)
		}
		r.Mode, r.Allowed = "ANY", []string{"order"}
		turn := answer(r)
		if len(turn.Calls) != 1 || turn.Calls[0].Name != "order" {
			t.Fatalf("%q: one call is due: %+v", prompt, turn)
		}
		var args map[string]any
		if raw, err := json.Marshal(turn.Calls[0].Args); err != nil || json.Unmarshal(raw, &args) != nil {
			t.Errorf("%q: %s, %v", prompt, raw, err)
		}
	})
}
