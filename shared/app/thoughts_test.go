package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// TestThoughtsRequested checks that thoughts are requested for clients of the AI SDK and of AG-UI, which show them, and
// for requests that ask for them, but not for others, and never from a model that has none. They are shown once, before
// the text, although the text is streamed.
func TestThoughtsRequested(t *testing.T) {
	const ui = `{"id":"c","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"hi"}]}]}`
	const agui = `{"threadId":"c","runId":"r","state":{},"tools":[],"context":[],"forwardedProps":{},` +
		`"messages":[{"id":"m","role":"user","content":"hi"}]}`
	for name, c := range map[string]struct {
		model, path, body string
		shown             string // the thought shown; empty if none is requested
	}{
		"the AI SDK":      {"gemini-2.5-flash", "/api/agent/ui", ui, `"type":"reasoning-delta"`},
		"AG-UI":           {"gemini-flash-latest", "/api/agent/agui", agui, `"type":"REASONING_MESSAGE_CONTENT"`},
		"an older model":  {"gemini-2.0-flash", "/api/agent/ui", ui, ""},
		"another kind":    {"gemma-3-27b-it", "/api/agent/agui", agui, ""},
		"an answer alone": {"gemini-2.5-flash", "/api/agent/run", `{"prompt":"hi"}`, ""},
		"a stream":        {"gemini-3-pro-preview", "/api/agent/run/stream", `{"prompt":"hi"}`, ""},
		"a stream that asks": {"gemini-3-pro-preview", "/api/agent/run/stream", `{"prompt":"hi","thoughts":true}`,
			`{"type":"thought","delta":"A greeting is due."}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := deploy(t, "GEMINI_MODEL="+c.model)
			asked := false
			w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
				if asked = r.Thoughts; asked {
					return fakegemini.Turn{Thought: "A greeting is due.", Text: "Hello."}
				}
				return fakegemini.Turn{Text: "Hello."}
			})
			a := w.call("POST", c.path, c.body)
			if a.HTTP != 200 || !strings.Contains(string(a.Body), "Hello.") || asked != (c.shown != "") {
				t.Fatalf("asked for thoughts: %v; %d %s", asked, a.HTTP, a.Body)
			}
			shown := strings.Index(string(a.Body), c.shown)
			if asked && (shown < 0 || shown > strings.Index(string(a.Body), "Hello.") ||
				strings.Count(string(a.Body), "A greeting is due.") != 1) {
				t.Errorf("the thought is not shown once, before the text: %s", a.Body)
			}
		})
	}
}

// TestThoughtsOfAgentFile checks that an agent's file can request thoughts for every client, also of a page's agent,
// and that the log has none.
func TestThoughtsOfAgentFile(t *testing.T) {
	dir := t.TempDir()
	for name, more := range map[string]string{"open": "", "shop": "page: true\n"} {
		if err := os.WriteFile(filepath.Join(dir, name+".agent.yaml"),
			[]byte("name: "+name+"\ninstruction: Help.\nthoughts: true\n"+more), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := deploy(t, "GEMINI_MODEL=gemini-2.5-flash", "AGENTS="+dir)
	w.SetModel(func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Thought: "CANARY-thought.", Text: "Hello."}
	})
	for path, body := range map[string]string{
		"/api/agent/run/stream": `{"prompt":"hi","agent":"open"}`,
		"/api/agent/chat":       `{"message":"hi","agent":"shop"}`,
	} {
		a, err := w.Call(t.Context(), "ana", "POST", path, body, "Accept", "application/x-ndjson")
		if got := string(a.Body); err != nil || !strings.Contains(got, `{"type":"thought","delta":"CANARY-thought."}`) {
			t.Errorf("%s: %v %s; want got with %q", path, err, got, `{"type":"thought","delta":"CANARY-thought."}`)
		}
	}
	if got := w.Logs.String(); got == "" || strings.Contains(got, "CANARY") {
		t.Errorf("the log is %s", got)
	}
}
