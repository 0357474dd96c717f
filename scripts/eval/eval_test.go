package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/countersign/eval"
	"github.com/countersign-run/countersign/shared/engine/toolbox"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// command runs the command with settings, and returns what it printed.
func command(t *testing.T, settings map[string]string, args ...string) (out string, passed bool, err error) {
	t.Helper()
	var printed bytes.Buffer
	passed, err = evaluate(t.Context(), args, func(name string) string { return settings[name] }, &printed, io.Discard)
	return printed.String(), passed, err
}

// wrote writes a file into a folder, and returns its name.
func wrote(t *testing.T, dir, name, text string) string {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestExample runs the example without a key, compares it with its own results, and with those of a stricter case.
func TestExample(t *testing.T) {
	last := filepath.Join(t.TempDir(), "last.json")
	flags := []string{"-offline", "-agent", "planner-of-days", "-agents", "example/agents", "-out", last}
	out, passed, err := command(t, nil, append(flags, "example")...)
	if err != nil || !passed || !strings.Contains(out, "4 of 4 cases passed") ||
		!strings.Contains(out, "day.evalset.json/lunch_and_thanks  100% of 1") || strings.Contains(out, "Since") {
		t.Fatalf("%v %v\n%s", passed, err, out)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out[:strings.Index(out, "\n\n")+1]) {
		if !strings.Contains(string(readme), "    "+line) {
			t.Errorf("README.md has not the line %q", line)
		}
	}
	if out, _, err = command(t, nil, append(flags, "-case", "lunch", "example")...); err != nil ||
		!strings.Contains(out, "no difference") || !strings.Contains(out, "2 of 2 cases") {
		t.Errorf("%v\n%s", err, out)
	}
	if r, err := eval.ReadReport(last); err != nil || len(r.Cases) != 4 {
		t.Errorf("the results of the other cases are gone: %v %+v", err, r)
	}
	dir := t.TempDir()
	wrote(t, dir, "calendar.eval.yaml", `
agent: planner-of-days
never: [calendar_event_create]
cases: [{name: lunch, prompt: schedule lunch with ana@example.com tomorrow at noon}]
`)
	out, passed, err = command(t, nil, "-offline", "-agents", "example/agents", "-against", last, dir)
	if err != nil || passed ||
		!strings.Contains(out, "Worse:\n  calendar.eval.yaml/lunch: passed 100% → 0%, calls 1.00 → 0.00") ||
		!strings.Contains(out, "turn 1: must not be called: calendar_event_create {") {
		t.Errorf("%v %v\n%s", passed, err, out)
	}
}

// TestWrong has the command name each mistake before anything runs.
func TestWrong(t *testing.T) {
	dir := t.TempDir()
	wrote(t, dir, "a.eval.yaml", "cases: [{name: a, prompt: Hi.}]")
	wrote(t, dir, "not.json", "no")
	for args, want := range map[string]string{
		"":                                    "one folder or file of cases was expected",
		"-n x " + dir:                         "-h prints the flags",
		dir:                                   "or -offline, for the demo model",
		"-offline " + dir + "/nowhere":        "a folder with files of cases was expected",
		"-offline -case b " + dir:             `-case is "b"; none of the 1 cases has it`,
		"-offline -agent x " + dir:            `-agent is "x"; the agents are `,
		"-offline -agents " + dir + " " + dir: "AGENTS: ",
		"-offline -reads gmail_send " + dir:   "gmail_send changes something",
		"-offline -n 101 " + dir:              "101 runs; the limit is 100",
		"-offline -against " + dir + "/not.json " + dir:     "not the results of an evaluation",
		"-offline -results " + dir + "/nothing.yaml " + dir: "nothing.yaml: ",
	} {
		if out, _, err := command(t, nil, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %s, want %s", args, err, out, want)
		}
	}
}

// desk is an operator's MCP server, with calls that reach it.
func desk(t *testing.T) (url string, calls func() []string) {
	var mu sync.Mutex
	var all []string
	s := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
	for _, name := range []string{"look", "note"} {
		s.AddTool(&mcp.Tool{Name: name, Description: "It can " + name + ".",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, name)
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "really"}}}, nil
			})
	}
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	return web.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// TestEvalWithoutEffects evaluates an agent with an e-mail, and with the tools of an MCP server, through Gemini's
// protocol. Nothing reaches the server but a call of a tool that only reads and that the flag names. A model judges.
func TestEvalWithoutEffects(t *testing.T) {
	gemini := fakegemini.New(func(r fakegemini.Request) fakegemini.Turn {
		said := r.User()
		switch {
		case strings.Contains(said, "statements"):
			return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "final_answer", Args: map[string]any{
				"verdicts": []map[string]any{{"why": "It says so.", "true": strings.Contains(said, "It is stored")}}}}}}
		case r.Responses() != nil:
			return fakegemini.Turn{Text: "It is stored: " + string(r.Responses()[0].Response)}
		}
		call := fakegemini.Call{Name: said, Args: map[string]any{"text": "The demo is at ten."}}
		if said == "gmail_send" {
			call.Args = map[string]any{"to": []string{"ana@example.com"}, "subject": "Demo", "body": "At ten."}
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{call}}
	})
	web := httptest.NewServer(gemini)
	defer web.Close()
	url, calls := desk(t)
	dir := t.TempDir()
	agents := filepath.Join(dir, "agents")
	if err := os.Mkdir(agents, 0o700); err != nil {
		t.Fatal(err)
	}
	wrote(t, agents, "clerk.agent.yaml", "name: clerk\ninstruction: Write things down.\nonReject: failed\n"+
		"tools: [gmail_send, desk_look, desk_note]\nlimits: {modelCalls: 4}\n")
	settings := map[string]string{"GEMINI_API_KEY": "a-key-of-the-fake-gemini", "GOOGLE_GEMINI_BASE_URL": web.URL,
		"STORE": "firestore", "GOOGLE_CLOUD_PROJECT": "somebodys-project", "GMAIL_API_ENDPOINT": "http://127.0.0.1:1/",
		"MCP_SERVERS": wrote(t, dir, "mcp.json", `{"mcpServers":{"desk":{"url":"`+url+`","readOnly":["look"]}}}`)}
	wrote(t, dir, "clerk.eval.yaml", `
rubrics: [The agent says that it is stored.]
cases:
  - {name: mail, prompt: gmail_send, calls: [gmail_send], answer: {contains: [not run in an evaluation]}}
  - name: note
    prompt: desk_note
    calls: [{tool: desk_note, args: {text: The demo is at ten.}}]
    tools: {desk_note: {result: 7}}
    answer: {contains: ["7"]}
  - {name: rejected, prompt: desk_note, calls: [desk_note], approvals: {desk_note: reject}, thresholds: {rubric: 0}}
  - {name: look, prompt: desk_look, answer: {contains: [really]}}
`)
	last := filepath.Join(dir, "out.json")
	out, passed, err := command(t, settings, "-agents", agents, "-agent", "clerk", "-reads", "desk_look", "-out", last,
		dir)
	if err != nil || !passed || !strings.Contains(out, "4 of 4 cases passed") {
		t.Errorf("%v %v\n%s", passed, err, out)
	}
	if got := strings.Join(calls(), " "); got != "look" {
		t.Errorf("the server was called: %s", got)
	}
	if r, err := eval.ReadReport(last); err != nil || r.Cases[0].Runs[0].Measures[eval.Rubric].Score != 1 {
		t.Errorf("%+v %v; want r.Cases[0].Runs[0].Measures[eval.Rubric].Score 1", r, err)
	}
	if refused := gemini.Refused(); len(refused) > 0 {
		t.Errorf("%q", refused)
	}
}

// TestPlaceAndTime gives the model the time, the time zone and the language of the case's user, each case its own.
func TestPlaceAndTime(t *testing.T) {
	gemini := httptest.NewServer(fakegemini.New(func(r fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Text: r.System}
	}))
	defer gemini.Close()
	dir := t.TempDir()
	wrote(t, dir, "a.eval.yaml", `
cases:
  - name: lisbon
    prompt: Hi.
    now: 2027-07-01T23:30:00Z
    timeZone: Europe/Lisbon
    language: pt-PT
    answer: {contains: [Thursday 2027-07-01 23:30 UTC, time zone is Europe/Lisbon; there it was, 2 July 2027, pt-PT]}
  - {name: tokyo, prompt: Hi., now: "2026-12-31T15:00:00Z", timeZone: Asia/Tokyo, answer: {contains: [1 January 2027]}}
  - {name: now, prompt: Hi., answer: {lacks: [2027-07, Asia]}}
`)
	out, passed, err := command(t, map[string]string{"GEMINI_API_KEY": "a-key-of-the-fake-gemini",
		"GOOGLE_GEMINI_BASE_URL": gemini.URL}, dir)
	if err != nil || !passed {
		t.Errorf("%v %v\n%s", passed, err, out)
	}
}

// TestBuiltInTools has stand-ins answer each kind of built-in tool, those too that complete their arguments from the
// account that they act on.
func TestBuiltInTools(t *testing.T) {
	gemini := fakegemini.New(func(r fakegemini.Request) fakegemini.Turn {
		if r.Responses() != nil {
			return fakegemini.Turn{Text: string(r.Responses()[0].Response)}
		}
		name, args, _ := strings.Cut(r.User(), " ")
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: name, Args: json.RawMessage(args)}}}
	})
	web := httptest.NewServer(gemini)
	defer web.Close()
	dir := t.TempDir()
	var cases []map[string]any
	tools := "name: clerk\ninstruction: Do as you are told.\ntools:\n"
	for name, args := range map[string]string{
		"gmail_send":            `{"replyTo":{"messageId":"18c2f4a9b0d1e2f3","all":true},"body":"Yes."}`,
		"gmail_draft":           `{"to":["ana@example.com"],"subject":"Demo","body":"At ten."}`,
		"gmail_search":          `{"query":"demo"}`,
		"gmail_read":            `{"messageId":"18c2f4a9b0d1e2f3"}`,
		"gmail_modify":          `{"messageIds":["18c2f4a9b0d1e2f3"],"addLabels":["STARRED"]}`,
		"calendar_event_create": `{"summary":"Demo","start":"2027-03-02","end":"2027-03-03","allDay":true}`,
		"calendar_event_update": `{"eventId":"event12345","summary":"Demo"}`,
		"calendar_respond":      `{"eventId":"event12345","answer":"accepted"}`,
		"calendar_freebusy":     `{"from":"2027-03-02","to":"2027-03-02","timeZone":"UTC"}`,
		"calendar_events_list":  `{"from":"2027-03-02","to":"2027-03-02","timeZone":"UTC"}`,
		"web_fetch":             `{"url":"https://example.com/"}`,
		"google_web_search":     `{"query":"demo"}`,
		"remember":              `{"text":"I like tea."}`,
	} {
		tools += "  - " + name + "\n"
		cases = append(cases, map[string]any{"name": name, "prompt": name + " " + args, "calls": []string{name},
			"answer": map[string]any{"contains": "not run in an evaluation"}})
	}
	file, err := json.Marshal(map[string]any{"agent": "clerk", "cases": cases})
	if err != nil {
		t.Fatal(err)
	}
	wrote(t, dir, "tools.eval.json", string(file))
	wrote(t, dir, "clerk.agent.yaml", tools+"limits: {modelCalls: 4}\n")
	settings := map[string]string{"GEMINI_API_KEY": "a-key-of-the-fake-gemini", "GOOGLE_GEMINI_BASE_URL": web.URL,
		"GMAIL_SEARCH": "on", "GMAIL_MODIFY": "on", "WEB_TOOLS": "on", "MEMORY": "on", "AGENTS": dir}
	out, passed, err := command(t, settings, filepath.Join(dir, "tools.eval.json"))
	if err != nil || !passed || len(gemini.Refused()) > 0 {
		t.Errorf("%v %v %q\n%s", passed, err, gemini.Refused(), out)
	}
}

// late are the tools of a server that needs 9 s to answer: three waits of 3 s.
type late struct {
	toolbox.Dynamic
	waits int
}

func (l *late) Await(context.Context) { l.waits++ }

func (l *late) Tools() tool.Set {
	if l.waits < 3 {
		return nil
	}
	return tool.Set{"desk_look": {}}
}

// TestServerLate checks that an evaluation knows the tools of a server that answers within its ten seconds.
func TestServerLate(t *testing.T) {
	d := &deployment{own: tool.Set{}, served: &late{}}
	if d.known(t.Context()); !maps.Equal(d.tools, map[string]bool{"desk_look": false, tool.FinalAnswer: false,
		toolbox.TakeBackTool: false}) {
		t.Errorf("the tools are %v; want desk_look among them", d.tools)
	}
}
