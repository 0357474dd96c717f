package app_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// bodyWith are the bodies of a first message, by route, with more fields.
var bodyWith = map[string]func(more string) string{
	"/api/agent/run":        func(more string) string { return `{"prompt":"hi"` + more + `}` },
	"/api/agent/run/stream": func(more string) string { return `{"prompt":"hi"` + more + `}` },
	"/api/agent/chat": func(more string) string {
		return `{"message":"hi","history":[],"toolDefinitions":[],"pageState":{}` + more + `}`
	},
	"/api/agent/ui": func(more string) string {
		return `{"id":"c","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"hi"}]}]` + more + `}`
	},
	"/api/agent/agui": func(more string) string {
		return `{"threadId":"c","runId":"r","state":{},"tools":[],"context":[],"forwardedProps":{` +
			strings.TrimPrefix(more, ",") + `},"messages":[{"id":"m","role":"user","content":"hi"}]}`
	},
}

// TestModelChoice checks that a request can choose among the operator's models, and no others.
func TestModelChoice(t *testing.T) {
	for path, body := range bodyWith {
		t.Run(path, func(t *testing.T) {
			w := deploy(t, "GEMINI_MODEL=gemini-a", "GEMINI_MODELS=gemini-b, gemini-c")
			var asked []string
			w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
				asked = append(asked, r.Model)
				return fakegemini.Turn{Text: "Hello."}
			})
			for _, other := range []string{`"gemini-d"`, `""`, `"gemini-b "`} {
				a := w.call("POST", path, body(`,"model":`+other))
				if a.HTTP != http.StatusBadRequest || len(asked) > 0 {
					t.Fatalf("%s: %d %s", other, a.HTTP, a.Body)
				}
				holds(t, "the refusal", string(a.Body), `"field":"model"`)
				if other != `""` {
					holds(t, "the refusal", string(a.Body), "gemini-a, gemini-b, gemini-c")
				}
			}
			a := w.call("POST", path, body(`,"model":"gemini-c"`))
			if a.HTTP != http.StatusOK || strings.Join(asked, " ") != "gemini-c" ||
				!strings.Contains(string(a.Body), "Hello.") {
				t.Errorf("asked %s: %d %s", asked, a.HTTP, a.Body)
			}
		})
	}
}

// TestModelChoiceAfterApproval checks that a run keeps its model after an approval and in its record, that its
// thread's next run has the agent's own, and that no model gets the signature of another (the fake refuses it).
func TestModelChoiceAfterApproval(t *testing.T) {
	w := deploy(t, "GEMINI_MODEL=gemini-a", "GEMINI_MODELS=gemini-b")
	var asked []string
	noting := func(next fakegemini.ModelFunc) fakegemini.ModelFunc {
		return func(r fakegemini.Request) fakegemini.Turn {
			asked = append(asked, r.Model)
			return next(r)
		}
	}
	w.SetModel(noting(testkit.Wants("gmail_send", testkit.Mail("bob@example.com", "Hello", "Hi."))))
	a := w.call("POST", "/api/agent/run", `{"prompt":"please do it","model":"gemini-b"}`)
	w.approve(a)
	v := w.call("GET", "/api/agent/runs/"+a.RunID, "")
	holds(t, "the run", string(v.Body), `"modelName":"gemini-b"`, `"status":"completed"`)
	w.SetModel(noting(testkit.Says("Gladly.")))
	w.call("POST", "/api/agent/run", `{"prompt":"thanks","threadId":"`+v.ThreadID+`"}`)
	if got := strings.Join(asked, " "); got != "gemini-b gemini-b gemini-a" {
		t.Errorf("asked %s", got)
	}
	if wrong := w.Gemini.Refused(); len(wrong) > 0 {
		t.Error(wrong)
	}
}

// TestModelChoiceWithdrawn takes a model off the operator's list while a run of it waits. The run continues
// with its agent's own model, which does not get the signature of the other (the fake refuses it).
func TestModelChoiceWithdrawn(t *testing.T) {
	o := testkit.Options{Dir: t.TempDir(), Settings: []string{"GEMINI_MODEL=gemini-a", "GEMINI_MODELS=gemini-b"}}
	w := deployWith(t, o)
	var asked []string
	next := testkit.Wants("gmail_send", testkit.Mail("bob@example.com", "Hello", "Hi."))
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		asked = append(asked, r.Model)
		return next(r)
	})
	a := w.call("POST", "/api/agent/run", `{"prompt":"please do it","model":"gemini-b"}`)
	o.Settings = o.Settings[:1]
	w.restart(o, func() {})
	w.approve(a)
	v := w.call("GET", "/api/agent/runs/"+a.RunID, "")
	holds(t, "the run", string(v.Body), `"modelName":"gemini-b"`, `"status":"completed"`)
	w.sent(1)
	if got, wrong := strings.Join(asked, " "), w.Gemini.Refused(); got != "gemini-b gemini-a" || len(wrong) > 0 {
		t.Errorf("asked %s; refused %v", got, wrong)
	}
}

// TestModelChoiceOfChat checks that the model of a conversation that its page keeps cannot change.
func TestModelChoiceOfChat(t *testing.T) {
	w := deploy(t, "GEMINI_MODEL=gemini-a", "GEMINI_MODELS=gemini-b")
	var asked []string
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		asked = append(asked, r.Model)
		return fakegemini.Turn{Text: "Hello."}
	})
	first := w.call("POST", "/api/agent/chat", bodyWith["/api/agent/chat"](`,"model":"gemini-b"`))
	next := func(more string) testkit.Answer {
		return w.call("POST", "/api/agent/chat", `{"message":"and now?","history":`+string(first.History)+
			`,"toolDefinitions":[],"pageState":{}`+more+`}`)
	}
	if a := next(""); a.HTTP != http.StatusOK || strings.Join(asked, " ") != "gemini-b gemini-b" {
		t.Errorf("asked %s: %d %s", asked, a.HTTP, a.Body)
	}
	if a := next(`,"model":"gemini-b"`); a.HTTP != http.StatusOK {
		t.Errorf("%d %s; want a.HTTP %v", a.HTTP, a.Body, http.StatusOK)
	}
	a := next(`,"model":"gemini-a"`)
	holds(t, "the refusal", string(a.Body), `"field":"model"`, "gemini-b")
}
