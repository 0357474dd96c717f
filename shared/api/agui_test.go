package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

const aguiPath = "/api/agent/agui"

// input is a RunAgentInput whose newest message is the user's words, with more fields if given.
func input(thread, runID, words, more string) string {
	messages := `[]`
	if words != "" {
		messages = fmt.Sprintf(`[{"id":"a","role":"assistant","content":"I did it."},`+
			`{"id":"m","role":"user","content":%q}]`, words)
	}
	return fmt.Sprintf(`{"threadId":%q,"runId":%q,"messages":%s,"tools":[],"context":[],"state":{}%s}`, thread, runID,
		messages, more)
}

// resume is the input's field that answers interrupts.
func resume(payload string, interrupts ...map[string]any) string {
	var all []string
	for _, i := range interrupts {
		card := i["metadata"].(map[string]any)["countersign"].(map[string]any)
		all = append(all, fmt.Sprintf(`{"interruptId":%q,"status":"resolved","payload":%s}`, i["id"],
			strings.ReplaceAll(payload, "HASH", card["argsHash"].(string))))
	}
	return `,"resume":[` + strings.Join(all, ",") + `]`
}

// events returns the types of the events of an AG-UI stream, and the last event.
func events(t *testing.T, a answer) (types []string, last map[string]any) {
	t.Helper()
	for event := range strings.SplitSeq(strings.TrimSuffix(string(a.body), "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(event, "data: ")
		if strings.HasPrefix(event, ":") {
			continue
		}
		last = nil
		if err := json.Unmarshal([]byte(data), &last); !ok || err != nil {
			t.Fatalf("%d: %s", a.StatusCode, a.body)
		}
		types = append(types, last["type"].(string))
	}
	return types, last
}

// interrupts returns the interrupts at the end of a stream.
func interrupts(t *testing.T, a answer) (all []map[string]any) {
	t.Helper()
	_, last := events(t, a)
	outcome, _ := last["outcome"].(map[string]any)
	list, _ := outcome["interrupts"].([]any)
	for _, i := range list {
		all = append(all, i.(map[string]any))
	}
	return all
}

const yes = `{"decision":"approve_once","argsHash":"HASH"}`

// TestAGUIDecisionBoundToBytes checks that an answer counts only for the bytes that were shown, only for their user,
// and once.
func TestAGUIDecisionBoundToBytes(t *testing.T) {
	w := moving(newEnv(t))
	w.wants("x")
	cards := interrupts(t, w.send("POST", aguiPath, "ana", input("c", "r", "mail bob", "")))
	if len(cards) != 1 {
		t.Fatalf("it asks %v", cards)
	}
	for name, c := range map[string]struct {
		uid, payload string
		status       int
	}{
		"no hash":      {"ana", `{"decision":"approve_once"}`, 400},
		"an empty one": {"ana", `{"decision":"approve_once","argsHash":""}`, 400},
		"no payload":   {"ana", `null`, 400},
		"another user": {"eve", yes, 404},
	} {
		a := w.send("POST", aguiPath, c.uid, input("c", name, "", resume(c.payload, cards...)))
		if a.StatusCode != c.status || a.at("error", "code") == "" {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	stale := strings.ReplaceAll(yes, "HASH", strings.Repeat("0", 64))
	a := w.send("POST", aguiPath, "ana", input("c", "stale", "", resume(stale, cards...)))
	if again := interrupts(t, a); len(again) != 1 || !strings.Contains(string(a.body), `"code":"stale_view"`) {
		t.Errorf("another hash: %s", a.body)
	}
	if len(w.sent) > 0 {
		t.Fatalf("it sent %v", w.sent)
	}
	for range 2 { // a repeated answer gets the same response
		a = w.send("POST", aguiPath, "ana", input("c", "yes", "", resume(yes, cards...)))
		if types, _ := events(t, a); slices.Contains(types, "CUSTOM") || types[len(types)-1] != "RUN_FINISHED" {
			t.Errorf("it is told %s", a.body)
		}
	}
	a = w.send("POST", aguiPath, "ana", input("c", "no", "", resume(`{"decision":"reject","argsHash":"HASH"}`, cards...)))
	if !strings.Contains(string(a.body), `"code":"already_resolved"`) || len(w.sent) != 1 {
		t.Errorf("the other answer is told %s, and it sent %v", a.body, w.sent)
	}
}

// TestAGUIRequestRepeated checks that repeats of one request ID start one run, in the user's own thread.
func TestAGUIRequestRepeated(t *testing.T) {
	w := newEnv(t)
	for range 5 {
		w.model.Then(script.Turn{Text: "Hello."})
	}
	for i, c := range []struct {
		uid, thread, runID, words string
		status, asked             int
	}{
		{"ana", "c", "r1", "hello", 200, 1}, {"ana", "c", "r1", "hello", 200, 1},
		{"ana", "c", "r1", "hello again", 409, 1},
		{"ana", "c", "r1", "", 200, 1}, {"ana", "c", "r2", "hello", 200, 2}, {"ana", "d", "r1", "hello", 200, 3},
		{"eve", "c", "r1", "", 200, 3}, {"eve", "c", "r1", "hello", 200, 4},
	} {
		a := w.send("POST", aguiPath, c.uid, input(c.thread, c.runID, c.words, ""))
		if n := len(w.model.Requests()); a.StatusCode != c.status || n != c.asked {
			t.Errorf("%d: %d %s; the model was asked %d times", i, a.StatusCode, a.body, n)
		}
		if strings.Contains(string(a.body), "I did it.") {
			t.Errorf("%d: what the client claims is told: %s", i, a.body)
		}
	}
}

// TestAGUIUndoWindow follows an approval that is held until the call has run.
func TestAGUIUndoWindow(t *testing.T) {
	w := moving(newEnv(t))
	w.loop.UndoWindow = 300 * time.Millisecond
	w.wants("x")
	cards := interrupts(t, w.send("POST", aguiPath, "ana", input("c", "r", "mail bob", "")))
	_, last := events(t, w.send("POST", aguiPath, "ana", input("c", "s", "", resume(yes, cards...))))
	if outcome := last["outcome"].(map[string]any); outcome["type"] != "success" || len(w.sent) != 1 {
		t.Errorf("it ends with %v and has sent %v", last, w.sent)
	}
}

// TestAGUILimits checks that the general limits apply although unknown fields are ignored.
func TestAGUILimits(t *testing.T) {
	w := newEnv(t)
	for body, status := range map[string]int{
		`{"threadId":"c","threadId":"d","runId":"r"}`:      400,
		input("", "r", "hello", ""):                        400,
		input("c", strings.Repeat("x", 257), "hello", ""):  400,
		input("c", "r", strings.Repeat("x", 32<<10+1), ""): 400,
		input("c", "r", " ", ""):                           400,
		input("c", "r", "hello", `,"forwardedProps":`+strings.Repeat("[", 65)+strings.Repeat("]", 65)):       400,
		input("c", "r", "", `,"x":"`+strings.Repeat("x", 1<<20)+`"`):                                         413,
		input("c", "r", "", `,"resume":[{"interruptId":"x","status":"resolved"}]`):                           400,
		input("c", "r", "", `,"resume":[`+strings.Repeat(`{},`, 100)+`{}]`):                                  400,
		input("c", "r", "hello", `,"forwardedProps":{"agent":"nobody"}`):                                     404,
		input("c", "r", "hello", `,"forwardedProps":{"timeZone":7}`):                                         400,
		`{"threadId":"c","runId":"r","messages":[{"role":"user","content":[{"type":"image","source":{}}]}]}`: 400,
	} {
		if a := w.send("POST", aguiPath, "ana", body); a.StatusCode != status {
			t.Errorf("%.80s: %d %s", body, a.StatusCode, a.body)
		}
	}
	w.model.Then(script.Turn{Text: "Hello."})
	parts := `{"threadId":"c","runId":"r","state":7,"forwardedProps":7,"messages":[{"role":"user","content":` +
		`[{"type":"text","text":"hel"},{"type":"text","text":"lo"}]}]}`
	if types, last := events(t, w.send("POST", aguiPath, "ana", parts)); last["type"] != "RUN_FINISHED" {
		t.Errorf("words in parts are told %v, %v", types, last)
	}
}

// TestAGUIRunError checks that the error of a failed run is sent as an event.
func TestAGUIRunError(t *testing.T) {
	w := newEnv(t)
	w.model.Then(script.Turn{Err: fault.New(fault.Model, "broken", "The model is broken.")})
	_, last := events(t, w.send("POST", aguiPath, "ana", input("c", "r1", "hello", "")))
	if last["type"] != "RUN_ERROR" || last["message"] != "The model is broken." {
		t.Errorf("it ends with %v", last)
	}
}
