package app_test

import (
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// TestThoughtsAreAskedForWhereTheyAreShown checks that thoughts are requested for clients of the AI SDK and of AG-UI,
// which show them, but not for other clients, and never from a model that has none.
func TestThoughtsAreAskedForWhereTheyAreShown(t *testing.T) {
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
			if asked && (!strings.Contains(string(a.Body), c.shown) ||
				!strings.Contains(string(a.Body), "A greeting is due.")) {
				t.Errorf("the thought is not shown: %s", a.Body)
			}
		})
	}
}
