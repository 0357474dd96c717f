package api_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/script"
)

// TestHalfAnEmoji sends bodies with a lone surrogate, which programs leave when they cut a text in an emoji. In
// words of people and pages it becomes U+FFFD. In prompts, arguments, hashes and IDs it is refused.
func TestHalfAnEmoji(t *testing.T) {
	w := newPlans(t)
	hello := script.Turn{Text: "Hello."}
	w.model.Then(hello, hello, hello)
	id := w.send("POST", "/api/agent/run", "ana", `{"prompt":"hello"}`).at("threadId")
	for _, path := range []string{"/api/agent/run", "/api/agent/run/stream", plansPath} {
		w.send("POST", path, "ana", `{"prompt":"cut \ud83d"}`).is(t, http.StatusBadRequest)
	}
	for name, body := range map[string]string{
		"/api/agent/agui": `{"threadId":"c","runId":"r","state":{"mine":"\ud83d"},"tools":[],"context":[{"description":"x",` +
			`"value":"cut \ud83d"}],"forwardedProps":{"x":["\ude00"]},"unknown":"\ud83d",` +
			`"messages":[{"id":"m","role":"user","content":"cut \ud83d"}]}`,
		"/api/agent/ui": `{"id":"c","unknown":{"\ud83d":"\ud83d"},` +
			`"messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"cut \ud83d"}]}]}`,
	} {
		a := w.send("POST", name, "ana", body)
		if a.StatusCode != http.StatusOK || !strings.Contains(string(a.body), "Hello.") {
			t.Errorf("%s: %s %s; want 200 OK and “Hello.”", name, a.Status, a.body)
		}
	}
	w.send("PATCH", "/api/agent/threads/"+id, "ana", `{"title":"cut \uD83D"}`).is(t, http.StatusOK,
		"thread.title", "cut \ufffd")
	w.send("PATCH", "/api/agent/memory/"+id, "ana", `{"text":"cut \ud83d"}`).is(t, http.StatusNotFound)
	w.asks("x")
	approval := w.send("POST", "/api/agent/run", "ana", `{"prompt":"mail bob"}`).at("approvals", "0", "approvalId")
	hash := strings.Repeat("a", 64)
	for _, wrong := range []string{
		fmt.Sprintf(`{"approvalId":%q,"decision":"reject","argsHash":"%s\ud83d"}`, approval, hash),
		fmt.Sprintf(`{"approvalId":"%s\ud83d","decision":"reject"}`, approval),
		fmt.Sprintf(`{"approvalId":%q,"decision":"approve_with_edits","editedArgs":{"text":"cut \ud83d"}}`, approval),
		fmt.Sprintf(`{"approvalId":%q,"decision":"reject\ud83d"}`, approval),
		fmt.Sprintf(`{"approvalId":%q,"decision":"reject","comment":"cut `+"\xff"+`"}`, approval),
	} {
		w.send("POST", "/api/agent/approvals/resolve", "ana", wrong).is(t, http.StatusBadRequest)
	}
	w.send("POST", "/api/agent/approvals/resolve", "ana",
		fmt.Sprintf(`{"approvalId":%q,"decision":"reject","comment":"cut \ud83d"}`, approval)).is(t, http.StatusOK)
	session := w.planned()
	w.model.Then(proposes("Tell her"))
	w.send("POST", plansPath+"/"+session+"/refine", "ana", `{"refinementPrompt":"cut \ud83d"}`).is(t, http.StatusAccepted)
}

// TestAnswerAskedAgain streams an answer that does not count, and the next one. No client can take back the first
// words, so the stream says what became of them.
func TestAnswerAskedAgain(t *testing.T) {
	for path, body := range map[string]string{
		"/api/agent/run/stream": `{"prompt":"hello"}`,
		uiPath:                  says("c", "m1", "hello"),
		"/api/agent/agui": `{"threadId":"c","runId":"r","state":{},"tools":[],"context":[],"forwardedProps":{},` +
			`"messages":[{"id":"m","role":"user","content":"hello"}]}`,
	} {
		w := newEnv(t)
		w.model.Then(script.Turn{Text: "Hel", Correction: "Again."}, script.Turn{Correction: "Again."},
			script.Turn{Text: "Hello."})
		var streamed strings.Builder
		for _, m := range deltas.FindAllStringSubmatch(string(w.send("POST", path, "ana", body).body), -1) {
			streamed.WriteString(m[1])
		}
		const want = `Hel\n\n[This answer is incomplete and does not count.]\n\nHello.`
		if streamed.String() != want {
			t.Errorf("%s streams %s; want %s", path, streamed.String(), want)
		}
	}
}

// deltas matches the pieces of text in each client's protocol.
var deltas = regexp.MustCompile(`"delta":"([^"]*)"`)
