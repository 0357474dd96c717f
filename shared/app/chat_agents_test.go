package app_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// pageAgents are two agents for web pages, and one other agent.
var pageAgents = map[string]string{
	"shop": "page: true\ndescription: Sells.\ninstruction: You serve the shop.\ntools:\n  - action_look\n" +
		"  - {name: action_cart_note, approval: required}\nlimits: {maxOpen: 1}\n",
	"docs": "page: true\ninstruction: You explain the docs.\nmodel: gemini-2.5-pro\ntemperature: 0.25\n" +
		"limits: {modelCalls: 2}\n",
	"clerk": "instruction: You look things up.\ntools: [gmail_send]\n",
}

// withPageAgents is a deployment with pageAgents. asked returns the last request to its model.
func withPageAgents(t *testing.T, settings ...string) (w *proved, asked func() fakegemini.Request) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range pageAgents {
		if err := os.WriteFile(filepath.Join(dir, name+".agent.yaml"), []byte("name: "+name+"\n"+text),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	w = withActions(t, newEndpoint(t), append(settings, "AGENTS="+dir)...)
	var last fakegemini.Request
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		last = r
		switch responses := r.Responses(); {
		case r.NoTools || len(responses) > 0 && !strings.Contains(r.User(), "again and again"):
			return fakegemini.Turn{Text: "That is what came of it."}
		case strings.Contains(r.User(), "note"):
			return fakegemini.Turn{Calls: []fakegemini.Call{
				{Name: "action_cart_note", Args: map[string]any{"id": "mug"}}}}
		case strings.Contains(r.User(), "click"):
			return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "click-x", Args: map[string]any{}}}}
		}
		return fakegemini.Turn{Text: "Hello."}
	})
	return w, func() fakegemini.Request { return last }
}

// says sends a message to the agent, or to the default, and continues the history if there is one.
func (w *proved) says(agent, message string, history json.RawMessage, header ...string) testkit.Answer {
	w.t.Helper()
	body := map[string]any{"message": message, "history": json.RawMessage(cmp.Or(string(history), "[]")),
		"toolDefinitions": json.RawMessage(clickTool), "pageState": map[string]any{"shows": "a mug"}}
	if agent != "" {
		body["agent"] = agent
	}
	return w.chat(chatPath, inJSON(w.t, body), header...)
}

// answers sends the page's results for the calls in the last answer.
func (w *proved) answers(a testkit.Answer, header ...string) testkit.Answer {
	w.t.Helper()
	results := []map[string]any{}
	for _, c := range a.Calls {
		if c.Approval == nil {
			results = append(results, map[string]any{"callId": c.ID, "result": `{"ok":true}`})
		}
	}
	return w.chat(chatPath+"/results", inJSON(w.t, map[string]any{"results": results, "history": a.History,
		"toolDefinitions": json.RawMessage(clickTool)}), header...)
}

func inJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (w *proved) wants(what string, a testkit.Answer, status int, in string) {
	w.t.Helper()
	if a.HTTP != status || !strings.Contains(string(a.Body), in) {
		w.t.Errorf("%s: %d %s, want %d and %s", what, a.HTTP, a.Body, status, in)
	}
}

// TestPageAgents checks that each page agent answers as its file says, in conversations of its own.
func TestPageAgents(t *testing.T) {
	onEachStore(t, func(t *testing.T, settings ...string) {
		w, asked := withPageAgents(t, settings...)
		told := func(agent, begins string, tools ...string) {
			t.Helper()
			r, names := asked(), []string{}
			for _, d := range r.Tools {
				names = append(names, d.Name)
			}
			if !strings.HasPrefix(r.System, begins) || !slices.Equal(names, tools) ||
				!strings.Contains(r.System, `{"shows":"a mug"}`) || (agent == "docs") != (r.Model == "gemini-2.5-pro") {
				t.Errorf("%s is told %s\nof the tools %v, model %s", agent, r.System, names, r.Model)
			}
		}
		listed := string(w.call("GET", "/api/agent/agents", "").Body)
		for _, want := range []string{
			`{"name":"shop","description":"Sells.","tools":["action_cart_note","action_look"],"page":true}`,
			`{"name":"docs","description":"","tools":[],"page":true}`, `"tools":["gmail_send"]}`} {
			if !strings.Contains(listed, want) {
				t.Errorf("the agents are %s, without %s", listed, want)
			}
		}
		docs := w.says("docs", "hi", nil)
		w.wants("docs", docs, http.StatusOK, `"type":"response"`)
		told("docs", "You explain the docs.\n\n## Available Server Actions\n", "click-x")
		shop := w.says("shop", "hi", nil)
		told("shop", "You serve the shop.\n\n## Available Server Actions\n", "action_cart_note", "action_look",
			"click-x")
		page := w.says("", "hi", nil)
		w.wants("page", w.says("page", "hi", page.History), http.StatusOK, `"type":"response"`)

		for name, history := range map[string]json.RawMessage{"docs": docs.History, "shop": shop.History,
			"page": page.History, "": page.History} {
			for other, theirs := range map[string]json.RawMessage{"docs": docs.History, "shop": shop.History,
				"page": page.History} {
				a := w.says(name, "and now", theirs)
				if bytes.Equal(history, theirs) {
					w.wants(name+" goes on", a, http.StatusOK, `"type":"response"`)
				} else if a.HTTP != http.StatusBadRequest || a.Error.Field != "history" ||
					!strings.Contains(string(a.Body), "set agent to "+other+" to continue") {
					t.Errorf("%q is sent a history of %s: %d %s", name, other, a.HTTP, a.Body)
				}
			}
		}
		for name, status := range map[string]int{"assistant": 404, "clerk": 404, "nobody": 404, "No name": 400} {
			a := w.says(name, "hi", nil)
			if a.HTTP != status || a.Error.Field != map[int]string{400: "agent"}[status] {
				t.Errorf("the agent %q: %d %s", name, a.HTTP, a.Body)
			}
		}
		t.Run("an action", func(t *testing.T) { actsAsItself(t, w) })
		t.Run("limits", func(t *testing.T) { boundedAsItself(t, w, asked) })
		t.Run("withdrawn", func(t *testing.T) {
			clicks := w.says("docs", "click", nil)
			delete(w.App.API.Loop.Agents, "docs")
			const gone = `The agent \"docs\" is no longer available. Please begin a new conversation.`
			w.wants("a message", w.says("docs", "and now", docs.History), http.StatusNotFound, gone)
			w.wants("results", w.answers(clicks), http.StatusNotFound, gone)
			w.wants("a new one", w.says("docs", "hi", nil), http.StatusNotFound, `"message":"There is no such thing,`)
		})
	})
}

// actsAsItself checks that the shop's agent needs an approval that the action itself does not. The action is a run of
// that agent.
func actsAsItself(t *testing.T, w *proved) {
	a := w.says("shop", "note the mug", nil)
	if len(a.Calls) != 1 || a.Calls[0].Approval == nil {
		t.Fatalf("%s; want len(a.Calls) 1, a.Calls[0].Approval set", a.Body)
	}
	run := a.Calls[0].RunID
	w.wants("its run", w.call("GET", "/api/agent/runs/"+run, ""), http.StatusOK, `"agent":"shop"`)
	// the shop can have one open approval; the page agent's are counted separately
	w.wants("another", w.says("shop", "note the cup", nil), http.StatusOK, `"type":"response"`)
	w.wants("the page's", w.says("page", "note the pot", nil), http.StatusOK, `"type":"response"`)
	w.wants("not the docs'", w.says("docs", "note the docs", nil), http.StatusOK, `"type":"response"`)
	if _, err := w.Resolve(t.Context(), "ana", *a.Calls[0].Approval, "approve_once"); err != nil {
		t.Fatal(err)
	}
	w.deliver()
	w.wants("after a yes", w.answers(a), http.StatusOK, `That is what came of it.`)
	w.wants("its run", w.call("GET", "/api/agent/runs/"+run, ""), http.StatusOK, `"status":"completed"`)
}

// boundedAsItself makes the model call the page repeatedly. The agent of the docs can be called twice.
func boundedAsItself(t *testing.T, w *proved, asked func() fakegemini.Request) {
	for agent, calls := range map[string]int{"docs": 1, "page": 11} {
		a := w.says(agent, "click again and again", nil)
		n := 0
		for ; a.Type == "tool-calls"; n++ {
			if strings.HasPrefix(asked().System, "You explain") != (agent == "docs") {
				t.Errorf("results went to %s", asked().System)
			}
			a = w.answers(a)
		}
		if n != calls || a.Type != "response" {
			t.Errorf("%s called the page %d times, want %d: %s", agent, n, calls, a.Body)
		}
	}
}
