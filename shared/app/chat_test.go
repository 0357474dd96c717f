package app_test

import (
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

const clickTool = `[{"name":"click-x","description":"Clicks.","inputSchema":{"type":"object"},"category":"page-automation"}]`

func (w *proved) chat(path, body string, header ...string) testkit.Answer {
	w.t.Helper()
	a, err := w.Call(w.t.Context(), "ana", "POST", path, body, header...)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func TestChatOverHTTP(t *testing.T) {
	w := deploy(t)
	w.SetModel(testkit.Wants("click-x", map[string]any{}))
	said := w.chat("/api/agent/chat", `{"message":"click","history":[],"toolDefinitions":`+clickTool+
		`,"pageState":{"x":1}}`)
	if said.Type != "tool-calls" || len(said.Calls) != 1 || said.Calls[0].Name != "click-x" ||
		said.Calls[0].Category != "page-automation" {
		t.Fatalf("%d %s; want said.Type “tool-calls”, len(said.Calls) 1, said.Calls[0].Name “click-x”, "+
			"said.Calls[0].Category “page-automation”",
			said.HTTP, said.Body)
	}
	results := func(history string) string {
		return `{"results":[{"callId":"` + said.Calls[0].ID + `","result":"{\"ok\":true}"}],"history":` + history +
			`,"toolDefinitions":` + clickTool + `,"pageState":{}}`
	}
	a := w.chat("/api/agent/chat/results", results(strings.Replace(string(said.History), `"click"`, `"clack"`, 1)))
	if a.HTTP != http.StatusBadRequest || a.Error.Field != "history" {
		t.Errorf("a changed history: %d %s", a.HTTP, a.Body)
	}
	if said = w.chat("/api/agent/chat/results", results(string(said.History))); said.Type != "response" ||
		said.Message != "That is what came of it." {
		t.Errorf("%d %s; want said.Type “response”, said.Message “That is what came of it.”", said.HTTP, said.Body)
	}
	for body, field := range map[string]string{`{"message":"hi","prompt":"x"}`: "prompt", `{"message":""}`: "message",
		`{"message":" \u200b\u00ad"}`: "message", `{"message":"hi","history":{}}`: "history"} {
		if a := w.chat("/api/agent/chat", body); a.HTTP != http.StatusBadRequest || a.Error.Field != field {
			t.Errorf("%s: %d %s; want a.HTTP %v, a.Error.Field %v", body, a.HTTP, a.Body, http.StatusBadRequest, field)
		}
	}
	key, err := os.ReadFile(filepath.Join(w.App.Config.DataDir, "chat-key"))
	if err != nil || len(key) != 32 {
		t.Errorf("the key of the chat: %d bytes, %v", len(key), err)
	}
}

// TestChatInstructions checks that the operator's systemPrompt comes first in the instructions, which ask for text
// after tools.
func TestChatInstructions(t *testing.T) {
	file := filepath.Join(t.TempDir(), ".gemini.yaml")
	if err := os.WriteFile(file, []byte("systemPrompt: You sell mugs.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := deploy(t, "GEMINI_CONFIG="+file)
	var system string
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		system = r.System
		return fakegemini.Turn{Text: "Hello."}
	})
	if said := w.chat("/api/agent/chat", `{"message":"hi"}`); said.Type != "response" {
		t.Fatalf("%d %s; want said.Type “response”", said.HTTP, said.Body)
	}
	const asks = "\nUse the provided tools to interact with the page. After using tools, describe what you did.\n"
	if !strings.HasPrefix(system, "You sell mugs.\n") || !strings.Contains(system, asks) {
		t.Errorf("it is told %s", system)
	}
}

func TestChatLines(t *testing.T) {
	w := deploy(t)
	w.SetModel(func(fakegemini.Request) fakegemini.Turn { return fakegemini.Turn{Text: "Hello there.", Pieces: 3} })
	var text, last string
	a := w.lines(chatPath, `{"message":"hi"}`, func(l testkit.Line) { text, last = text+l.Delta, l.Type })
	if kind := a.Header.Get("Content-Type"); text != "Hello there." || last != "response" ||
		kind != "application/x-ndjson; charset=utf-8" {
		t.Errorf("%q, %q, %q; want text “Hello there.”, last “response”, kind “application/x-ndjson; charset=utf-8”",
			text, last, kind)
	}
}

// Two processes with the same key serve one conversation. Another key refuses it.
func TestChatOnAnyInstance(t *testing.T) {
	const key = "CHAT_KEY=MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	one, two, other := deploy(t, key), deploy(t, key), deploy(t)
	said := one.chat("/api/agent/chat", `{"message":"hi"}`)
	again := `{"message":"hi again","history":` + string(said.History) + `}`
	if said := two.chat("/api/agent/chat", again); said.Type != "response" {
		t.Errorf("%d %s; want said.Type “response”", said.HTTP, said.Body)
	}
	if a := other.chat("/api/agent/chat", again); a.HTTP != http.StatusBadRequest {
		t.Errorf("%d %s; want a.HTTP %v", a.HTTP, a.Body, http.StatusBadRequest)
	}
}

// TestChatWithTooManyCalls lets the model make 20 calls in one answer. The page gets 16 of them, and the model learns
// that the others were not run, whether the page answers or the user writes on.
func TestChatWithTooManyCalls(t *testing.T) {
	w := deploy(t)
	var told string
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		if len(r.Contents) == 1 {
			call := fakegemini.Call{Name: "click-x", Args: map[string]any{}}
			return fakegemini.Turn{Calls: slices.Repeat([]fakegemini.Call{call}, 20)}
		}
		told = inJSON(t, r.Contents[2])
		return fakegemini.Turn{Text: "Clicked."}
	})
	first := w.chat(chatPath, `{"message":"click","toolDefinitions":`+clickTool+`}`)
	if len(first.Calls) != 16 {
		t.Fatalf("%d calls: %s; want 16", len(first.Calls), first.Body)
	}
	for name, a := range map[string]testkit.Answer{"results": w.answers(first),
		"words": w.says("", "and now", first.History)} {
		w.wants(name, a, http.StatusOK, "Clicked.")
		if n := strings.Count(told, "only the first 16 calls of an answer"); n != 4 {
			t.Errorf("%s: %d calls were not run: %s; want 4", name, n, told)
		}
	}
}

// Gemini omits the arguments of a tool without parameters (recording google-stream-no-args-tool-call); that counts as
// an empty object. A literal null is not an object, so the model gets a correction and the page is not called.
func TestChatCallWithoutArguments(t *testing.T) {
	for name, tt := range map[string]struct {
		args any
		asks bool
	}{"left out": {nil, true}, "an empty object": {map[string]any{}, true},
		"a literal null": {json.RawMessage("null"), false}} {
		t.Run(name, func(t *testing.T) {
			w := deploy(t)
			w.SetModel(testkit.Wants("click-x", tt.args))
			said := w.chat("/api/agent/chat", `{"message":"click","toolDefinitions":`+clickTool+`}`)
			if asks := said.Type == "tool-calls"; asks != tt.asks {
				t.Fatalf("%d %s; want asks %v", said.HTTP, said.Body, tt.asks)
			}
			if tt.asks && string(said.Calls[0].Args) != "{}" {
				t.Errorf("the page was given the arguments %s", said.Calls[0].Args)
			}
		})
	}
}

// A page tool cannot have a name that could be mistaken for one of the deployment's tools.
func TestChatPageToolNames(t *testing.T) {
	w := withActions(t, newEndpoint(t))
	named := func(name string) string {
		return `{"message":"hi","toolDefinitions":` + strings.Replace(clickTool, "click-x", name, 1) + `}`
	}
	for _, name := range []string{"gmail_send", "calendar_event_create", "Gmail.Send", "action_anything", "cart.add",
		"cart_note", "greet"} {
		a := w.chat("/api/agent/chat", named(name))
		if a.HTTP != http.StatusBadRequest || a.Error.Class != "ValidationError" ||
			a.Error.Field != "toolDefinitions/0/name" {
			t.Errorf("%s: %d %s; want a.HTTP %v, a.Error.Class “ValidationError”, a.Error.Field "+
				"“toolDefinitions/0/name”",
				name, a.HTTP, a.Body, http.StatusBadRequest)
		}
	}
	if a := w.chat("/api/agent/chat", named("gmail_send_button")); a.HTTP != http.StatusOK {
		t.Errorf("%d %s; want a.HTTP %v", a.HTTP, a.Body, http.StatusOK)
	}
}

// The 292 bytes that once killed the process, and similar ones: the values built from a page's schema are bounded,
// whether the schema is accepted or refused, and the next request is answered.
func TestChatHostileSchemas(t *testing.T) {
	w := deploy(t)
	w.SetModel(func(fakegemini.Request) fakegemini.Turn { return fakegemini.Turn{Text: "Hello."} })
	doubled := `{"type":"string"}`
	for range 9 {
		doubled = `{"allOf":[` + doubled + `,` + doubled + `]}`
	}
	for name, c := range map[string]struct {
		schema string
		taken  bool
	}{
		"all of it within itself": {`{"type":"object","allOf":[{"$ref":"#"}]}`, true},
		"a schema within itself":  {`{"type":"object","properties":{"a":{"$ref":"#"}}}`, true},
		"doubled by reference": {`{"type":"object","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},` +
			`"b":{"allOf":[{"$ref":"#/$defs/a"}]}},"properties":{"x":{"$ref":"#/$defs/a"}}}`, true},
		"a thousand nodes and on": {`{"type":"object","properties":{"x":` + doubled + `,"y":` + doubled + `}}`, false},
		"a pattern": {`{"type":"object","properties":{"x":{"type":"string","pattern":"` + strings.Repeat(
			"(?:a.a.){1000}", 9) + `"}}}`, true},
	} {
		a := w.chat("/api/agent/chat",
			`{"message":"hi","toolDefinitions":[{"name":"a","description":"b","inputSchema":`+c.schema+`}]}`)
		refused := a.HTTP == http.StatusBadRequest && strings.HasPrefix(a.Error.Field, "toolDefinitions/0/inputSchema")
		if taken := a.HTTP == http.StatusOK && a.Message == "Hello."; taken != c.taken || refused == taken {
			t.Errorf("%s: %d %s", name, a.HTTP, a.Body)
		}
	}
	if said := w.chat("/api/agent/chat", `{"message":"hi","toolDefinitions":`+clickTool+
		`}`); said.Message != "Hello." {
		t.Errorf("after them: %d %s", said.HTTP, said.Body)
	}
}

// oncePerMessage calls a tool for each message of the user.
func oncePerMessage(tool string, args any) fakegemini.ModelFunc {
	return func(r fakegemini.Request) fakegemini.Turn {
		if last := r.Contents[len(r.Contents)-1]; last.Parts[0].FunctionResponse != nil {
			return fakegemini.Turn{Text: "That is what came of it."}
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: tool, Args: args}}}
	}
}
