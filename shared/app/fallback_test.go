package app_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// TestFallbackModels checks that a fallback answers while a run's own model has no quota, that the run stays with it,
// and that no model gets the signature of another (the fake refuses it). The long Retry-After leaves no retry.
func TestFallbackModels(t *testing.T) {
	w := deploy(t, "GEMINI_MODEL=gemini-a", "GEMINI_FALLBACK_MODELS=gemini-b, gemini-c")
	var asked []string
	down := map[string]bool{}
	answers := func(next fakegemini.ModelFunc) fakegemini.ModelFunc {
		return func(r fakegemini.Request) fakegemini.Turn {
			asked = append(asked, r.Model)
			if down[r.Model] {
				return fakegemini.Turn{Status: http.StatusTooManyRequests,
					Header: http.Header{"Retry-After": {"3600"}}}
			}
			return next(r)
		}
	}
	w.SetModel(answers(testkit.Wants("gmail_send", testkit.Mail("bob@example.com", "Hello", "Hi."))))
	a := w.ask()
	down["gemini-a"], down["gemini-b"] = true, true
	w.SetModel(answers(testkit.Says("It is sent.")))
	w.approve(a)
	if got := strings.Join(asked, " "); got != "gemini-a gemini-a gemini-b gemini-c" {
		t.Errorf("asked %s", got)
	}
	v := w.call("GET", "/api/agent/runs/"+a.RunID, "")
	if v.Status != "completed" || !strings.Contains(string(v.Body), "It is sent.") ||
		!strings.Contains(string(v.Body), `"modelName":"gemini-a"`) {
		t.Errorf("%d %s; want v.Status “completed”, v.Body with “It is sent.”, v.Body with %q",
			v.HTTP, v.Body, `"modelName":"gemini-a"`)
	}

	asked = nil
	a = w.call("POST", "/api/agent/run/stream", `{"prompt":"hi"}`)
	if got := strings.Join(asked, " "); got != "gemini-a gemini-b gemini-c" ||
		!strings.Contains(string(a.Body), "It is sent.") {
		t.Errorf("asked %s: %s", got, a.Body)
	}
	down["gemini-c"], asked = true, nil
	if a = w.ask(); a.Status != "failed" || len(asked) != 3 ||
		!strings.Contains(string(a.Body), `"errorReason":"overloaded"`) {
		t.Errorf("asked %s: %s", asked, a.Body)
	}
	if wrong := w.Gemini.Refused(); len(wrong) > 0 {
		t.Error(wrong)
	}
}
