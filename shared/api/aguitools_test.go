package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// served are the tools of an MCP server, which are known only after it has listed them.
type served struct {
	mu       sync.Mutex
	now, all tool.Set
}

func (s *served) Report() []tool.ServerTools { return nil }

func (s *served) Renew(context.Context, string) error { return nil }

func (s *served) Tools() tool.Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.now)
}

func (s *served) Await(context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.all
}

// ofPage is an input with one tool of the page, and messages.
func ofPage(runID, name string, messages ...string) string {
	return fmt.Sprintf(`{"threadId":"c","runId":%q,"messages":[%s],"tools":[{"name":%q,"description":"x"}],`+
		`"protocolVersion":"1.0"}`, runID, strings.Join(messages, ","), name)
}

const spoke = `{"role":"user","content":"paint it"}`

// returned is a message with the result of a call, and more fields.
func returned(callID, more string) string {
	return fmt.Sprintf(`{"role":"tool","toolCallId":%q,%s}`, callID, more)
}

// left returns the call that a stream leaves to the page, or "".
func left(t *testing.T, a answer) string {
	t.Helper()
	_, last := events(t, a)
	outcome, _ := last["outcome"].(map[string]any)
	ids, _ := outcome["pendingToolCallIds"].([]any)
	if last["type"] != "RUN_FINISHED" || len(ids) > 1 {
		t.Fatalf("it ends with %v", last)
	}
	if len(ids) == 0 {
		return ""
	}
	return ids[0].(string)
}

// TestAGUIToolNameTaken checks that a page's tool cannot have the name of any tool that a run could use.
func TestAGUIToolNameTaken(t *testing.T) {
	w := newEnv(t)
	lookup, err := tool.Remote("wiki_lookup", "Looks up.", json.RawMessage(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	w.api.BuiltIn = []string{"calendar_event_create"}
	w.loop.Dynamic = &served{now: tool.Set{}, all: tool.Set{"wiki_lookup": lookup}}
	for _, name := range []string{"mail", "MAIL", "calendar.event-create", "wiki_lookup", "action_x", "1", ""} {
		a := w.send("POST", aguiPath, "ana", ofPage("r", name, spoke))
		if a.StatusCode != 400 || !strings.HasPrefix(fmt.Sprint(a.at("error", "field")), "tools/0") {
			t.Errorf("%q: %d %s; want a.StatusCode 400, fmt.Sprint(a.at(\"error\", \"field\")) that begins "+
				"with “tools/0”",
				name, a.StatusCode, a.body)
		}
	}
	w.model.Then(script.Turn{Text: "Hello."})
	if left(t, w.send("POST", aguiPath, "ana", ofPage("r", "paint", spoke))) != "" {
		t.Error("it leaves a call")
	}
}

// TestAGUIResultRace checks that one of two simultaneous results from two tabs counts, and that both tabs receive it.
func TestAGUIResultRace(t *testing.T) {
	w := moving(newEnv(t))
	for round := range 20 {
		w.model.Restart(script.Turn{Calls: []script.Call{{Name: "paint", Args: map[string]any{}}}},
			script.Turn{Text: "Done."})
		at := func(tab string, messages ...string) string {
			return strings.Replace(ofPage(fmt.Sprint(tab, round), "paint", messages...), `"c"`, fmt.Sprintf(`"c%d"`, round), 1)
		}
		id := left(t, w.send("POST", aguiPath, "ana", at("r", spoke)))
		var told [2]answer
		var both sync.WaitGroup
		for i, tab := range []string{"first", "second"} {
			both.Go(func() {
				told[i] = w.send("POST", aguiPath, "ana", at(tab, spoke, returned(id, `"content":"`+tab+`"`)))
			})
		}
		both.Wait()
		counts := func(a answer, tab string) bool { return strings.Contains(string(a.body), `"content":"`+tab+`"`) }
		first := counts(told[0], "first")
		for _, a := range told {
			if left(t, a) != "" || counts(a, "first") != first || counts(a, "second") == first ||
				!strings.Contains(string(a.body), "Done.") {
				t.Errorf("%d: the tabs are told\n%s\n%s", round, told[0].body, told[1].body)
			}
		}
		if n := len(w.model.Requests()); n != 2 {
			t.Errorf("%d: the model was asked %d times", round, n)
		}
	}
}

// TestAGUIDecisionAndResult sends a decision and a result in one request. The run continues in this process, because no
// other process moves it here, and the model's text streams as it arrives. If the result is invalid, nothing is
// decided.
func TestAGUIDecisionAndResult(t *testing.T) {
	w := newEnv(t)
	w.model.Then(script.Turn{Calls: []script.Call{{Name: "mail", Args: mailArgs{To: []string{"bob@x.org"}, Text: "x"}},
		{Name: "paint", Args: map[string]any{}}}}, script.Turn{Text: "Both are done."})
	a := w.send("POST", aguiPath, "ana", ofPage("r", "paint", spoke))
	_, rest, _ := strings.Cut(string(a.body), `"toolCallName":"paint"`)
	_, rest, _ = strings.Cut(rest, `"toolCallId":"`)
	id, _, _ := strings.Cut(rest, `"`)
	with := func(content string) string {
		return strings.TrimSuffix(ofPage(content, "paint", spoke, returned(id, `"content":`+content)), "}") +
			resume(yes, interrupts(t, a)...) + "}"
	}
	refused := w.send("POST", aguiPath, "ana", with("7"))
	waits := w.send("GET", "/api/agent/approvals/pending", "ana", "")
	if refused.StatusCode != 400 || !strings.Contains(string(waits.body), `"approvalId"`) {
		t.Errorf("no text is answered %d %s, and then %s waits", refused.StatusCode, refused.body, waits.body)
	}
	w.api.Budget = 30 * time.Second
	told := w.send("POST", aguiPath, "ana", with(`"red"`))
	types, last := events(t, told)
	if last["type"] != "RUN_FINISHED" || !slices.Contains(types, "TEXT_MESSAGE_CONTENT") || len(w.sent) != 1 ||
		slices.Index(types, "TEXT_MESSAGE_CONTENT") == slices.Index(types, "TEXT_MESSAGE_END")-1 {
		t.Errorf("it is told %s, and sent %v", told.body, w.sent)
	}
}

// TestAGUIResultOnce checks that a page's result counts once, and only for a waiting call of its own user.
func TestAGUIResultOnce(t *testing.T) {
	w := moving(newEnv(t))
	w.model.Then(script.Turn{Calls: []script.Call{{Name: "paint", Args: map[string]any{}}}}, script.Turn{Text: "Done."})
	id := left(t, w.send("POST", aguiPath, "ana", ofPage("r0", "paint", spoke)))
	for name, c := range map[string]struct {
		message, field string
	}{
		"too long":     {returned(id, `"content":"`+strings.Repeat("x", 64<<10+1)+`"`), "messages/1/content"},
		"no text":      {returned(id, `"content":7`), "messages/1/content"},
		"a file":       {returned(id, `"content":[{"type":"image"}]`), "messages/1/content/0"},
		"another call": {returned("x"+id, `"content":7`), ""},
		"no call":      {`{"role":"tool","content":7}`, ""},
		"before words": {returned(id, `"content":7`) + "," + spoke + `,{"role":"assistant","content":"x"}`, ""},
	} {
		a := w.send("POST", aguiPath, "ana", ofPage(name, "paint", spoke, c.message))
		switch {
		case c.field != "" && (a.StatusCode != 400 || a.at("error", "field") != c.field):
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		case c.field == "" && left(t, a) != id:
			t.Errorf("%s: %s does not wait any more", name, id)
		}
	}
	if a := w.send("POST", aguiPath, "eve", ofPage("r1", "paint", spoke, returned(id, `"content":"eve"`))); left(t,
		a) != "" || strings.Contains(string(a.body), id) {
		t.Errorf("another user is told %s", a.body)
	}
	for i, content := range []string{"first", "first", "second"} {
		a := w.send("POST", aguiPath, "ana", ofPage(fmt.Sprint("s", i), "paint", spoke,
			returned(id, `"content":"older"`), returned(id, `"content":"`+content+`"`)))
		if left(t, a) != "" || !strings.Contains(string(a.body), `"content":"first"`) {
			t.Errorf("%d: it is told %s", i, a.body)
		}
	}
	asked := w.model.Requests()
	if n := len(asked); n != 2 || !slices.ContainsFunc(asked[1].Contents, func(c json.RawMessage) bool {
		return strings.Contains(string(c), `"output":"first"`)
	}) {
		t.Errorf("the model was asked %d times, last with %s", n, asked[n-1].Contents)
	}
}
