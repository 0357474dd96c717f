package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// says is a useChat request whose newest message is the user's words.
func says(chat, id, words string) string {
	return fmt.Sprintf(`{"id":%q,"trigger":"submit-message","unheardOf":1,"messages":[{"id":%q,"role":"user",`+
		`"parts":[{"type":"text","text":%q}]}]}`, chat, id, words)
}

// answers is a useChat request with the user's answers to approvals.
func answers(chat string, of map[string]bool) string {
	var parts []string
	for id, yes := range of {
		parts = append(parts, fmt.Sprintf(`{"type":"dynamic-tool","toolName":"mail","toolCallId":"c","input":{"to":"eve"},`+
			`"state":"approval-responded","approval":{"id":%q,"approved":%t,"reason":"so"}}`, id, yes))
	}
	return fmt.Sprintf(`{"id":%q,"messages":[{"id":"a","role":"assistant","parts":[{"type":"step-start"},%s]}]}`, chat,
		strings.Join(parts, ","))
}

// chunks returns the chunks of a stream of the AI SDK.
func chunks(t *testing.T, a answer) (all []map[string]any) {
	t.Helper()
	ended := false
	for event := range strings.SplitSeq(strings.TrimSuffix(string(a.body), "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(event, "data: ")
		switch {
		case strings.HasPrefix(event, ":"):
			continue
		case !ok || ended:
			t.Fatalf("%q in %s", event, a.body)
		case data == "[DONE]":
			ended = true
			continue
		}
		var c map[string]any
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		all = append(all, c)
	}
	if !ended {
		t.Fatalf("%d, without an end: %s", a.StatusCode, a.body)
	}
	return all
}

// asked returns the approval IDs in a stream.
func asked(t *testing.T, a answer) (ids []string) {
	t.Helper()
	for _, c := range chunks(t, a) {
		if c["type"] == "tool-approval-request" {
			ids = append(ids, c["approvalId"].(string))
		}
	}
	return ids
}

// moving is an env whose queue delivers by itself.
func moving(w *env) *env {
	w.onResume = func(queue.Message) { go w.push() }
	return w
}

const uiPath = "/api/agent/ui"

// TestUIApprovalBytes checks that an approval counts only for the bytes that were shown, only for their user, and once.
func TestUIApprovalBytes(t *testing.T) {
	w := moving(newEnv(t))
	w.wants("x")
	ids := asked(t, w.send("POST", uiPath, "ana", says("c", "m1", "mail bob")))
	if len(ids) != 1 {
		t.Fatalf("it asks for %v", ids)
	}
	id, hash, _ := strings.Cut(ids[0], "~")
	for name, c := range map[string]struct {
		uid, id string
		status  int
	}{
		"another hash":  {"ana", id + "~" + strings.Repeat("0", len(hash)), 409},
		"no hash":       {"ana", id, 400},
		"another user":  {"eve", ids[0], 404},
		"another card":  {"ana", strings.Replace(ids[0], "-1~", "-2~", 1), 404},
		"nobody's card": {"ana", "abcdefghijklmnop-1~" + hash, 404},
	} {
		a := w.send("POST", uiPath, c.uid, answers("c", map[string]bool{c.id: true}))
		if a.StatusCode != c.status || a.at("error", "code") == "" ||
			a.Header.Get("X-Vercel-Ai-Ui-Message-Stream") != "" {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	if len(w.sent) > 0 {
		t.Fatalf("it sent %v", w.sent)
	}
	for range 2 { // a repeated answer gets the same response
		all := chunks(t, w.send("POST", uiPath, "ana", answers("other", map[string]bool{ids[0]: true})))
		if last := all[len(all)-1]; last["finishReason"] != "stop" {
			t.Errorf("it ends with %v", last)
		}
	}
	if a := w.send("POST", uiPath, "ana", answers("c", map[string]bool{ids[0]: false})); a.StatusCode != 409 {
		t.Errorf("the other answer: %d %s", a.StatusCode, a.body)
	}
	if len(w.sent) != 1 {
		t.Errorf("it sent %v", w.sent)
	}
}

// TestUIApprovalAfterMessage has the user write another message while a card waits, and then approve the card. useChat
// sends that answer only with the next message. It counts once, only for its own user and hash.
func TestUIApprovalAfterMessage(t *testing.T) {
	w := newEnv(t)
	w.asks("x")
	w.model.Then(script.Turn{Text: "Hello."}, script.Turn{Text: "Hello."}, script.Turn{Text: "Hello."},
		script.Turn{Text: "It is sent."}, script.Turn{Text: "Hello."})
	id := asked(t, w.send("POST", uiPath, "ana", says("c", "m1", "mail bob")))[0]
	later := func(message, id string, yes bool) string {
		return fmt.Sprintf(`{"id":"c","messages":[{"role":7},{"id":"a","role":"assistant","parts":[{"type":"text","text":`+
			`"\ud83d"},{"type":"dynamic-tool","state":"approval-responded","approval":{"id":%q,"approved":%t}}]},`+
			`{"id":%q,"role":"user","parts":[{"type":"text","text":"and hello"}]}]}`, id, yes, message)
	}
	open := func(want int) {
		t.Helper()
		if a := w.send("GET", "/api/agent/approvals/pending", "ana", ""); strings.Count(string(a.body), `"approvalId"`) != want {
			t.Fatalf("not %d approvals wait: %s", want, a.body)
		}
	}
	open(1)
	chunks(t, w.send("POST", uiPath, "ana", later("m2", id+"0", true))) // another hash
	chunks(t, w.send("POST", uiPath, "eve", later("m2", id, true)))
	open(1)
	for range 2 {
		chunks(t, w.send("POST", uiPath, "ana", later("m3", id, true)))
		open(0)
		w.push()
	}
	chunks(t, w.send("POST", uiPath, "ana", later("m4", id, false))) // too late
	if w.push(); len(w.sent) != 1 {
		t.Errorf("it sent %v", w.sent)
	}
}

// TestUIContradictingAnswers sends older messages with two answers to one approval. A rejection counts, whichever came
// first. An answer with both in one object counts as neither.
func TestUIContradictingAnswers(t *testing.T) {
	yes, no := `"approved":true`, `"approved":false`
	for name, c := range map[string]struct {
		messages [][]string // the answers of each
		waits    int
	}{
		"yes, then no":    {[][]string{{yes}, {no}}, 0},
		"no, then yes":    {[][]string{{no}, {yes}}, 0},
		"in one message":  {[][]string{{no, yes}}, 0},
		"in one object":   {[][]string{{no + "," + yes}}, 1},
		"under two names": {[][]string{{no + `,"Approved":true`}}, 0},
	} {
		w := newEnv(t)
		w.asks("x")
		w.model.Then(script.Turn{Text: "Hello."}, script.Turn{Text: "Hello."})
		id := asked(t, w.send("POST", uiPath, "ana", says("c", "m1", "mail bob")))[0]
		messages := ""
		for _, answers := range c.messages {
			parts := []string{`{"type":"step-start"}`}
			for _, a := range answers {
				parts = append(parts, fmt.Sprintf(`{"type":"dynamic-tool","state":"approval-responded","approval":{"id":%q,%s}}`,
					id, a))
			}
			messages += `{"id":"a","role":"assistant","parts":[` + strings.Join(parts, ",") + `]},`
		}
		chunks(t, w.send("POST", uiPath, "ana", `{"id":"c","messages":[`+messages+
			`{"id":"m2","role":"user","parts":[{"type":"text","text":"and hello"}]}]}`))
		w.push()
		p := w.send("GET", "/api/agent/approvals/pending", "ana", "")
		if waits := strings.Count(string(p.body), `"approvalId"`); waits != c.waits || len(w.sent) > 0 {
			t.Errorf("%s: %d cards wait, want %d; sent: %v", name, waits, c.waits, w.sent)
		}
	}
}

// TestUIHistoriesUnreadable sends histories with messages that a strict parser rejects. The newest words count; half an
// emoji in them becomes U+FFFD.
func TestUIHistoriesUnreadable(t *testing.T) {
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	for name, c := range map[string]struct{ path, body string }{
		"useChat": {uiPath, `{"id":"c","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"cut \ud83d"}]},` +
			`{"id":"m2","role":"assistant","parts":[{"type":"data-x","data":` + deep + `}]},{"id":"m2","id":"m3"},` +
			`{"id":"m3","role":"user","parts":[{"type":"text","text":"good \ude00"}]}]}`},
		"AG-UI": {"/api/agent/agui", `{"threadId":"c","runId":"r","state":{},"tools":[],"context":[],"forwardedProps":{},` +
			`"messages":[{"id":"m1","role":"user","content":"cut \ud83d"},{"id":"m2","role":"tool","toolCallId":"x","content":` +
			deep + `},{"id":"m3","role":"user","content":"good \ude00"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.model.Then(script.Turn{Text: "Hello."})
			if a := w.send("POST", c.path, "ana", c.body); a.StatusCode != 200 ||
				!strings.Contains(string(a.body), "Hello.") {
				t.Fatalf("%d %s; want a.StatusCode 200, a.body with “Hello.”", a.StatusCode, a.body)
			}
			if a := w.send("GET", "/api/agent/threads", "ana", ""); a.at("threads", "0", "title") != "good \ufffd" {
				t.Errorf("the title is %s", a.body)
			}
			if a := w.send("POST", c.path, "ana", c.body[:len(c.body)-1]); a.StatusCode != 400 {
				t.Errorf("half a body: %d %s", a.StatusCode, a.body)
			}
		})
	}
}

// TestUIMessageRepeated checks that each message and text starts one run, in the user's own conversation.
func TestUIMessageRepeated(t *testing.T) {
	w := newEnv(t)
	w.model.Then(script.Turn{Text: "One."}, script.Turn{Text: "Two."}, script.Turn{Text: "Three."},
		script.Turn{Text: "Four."})
	runs, threads := map[string]string{}, map[string]string{}
	for _, c := range []struct{ uid, chat, id, text string }{
		{"ana", "c", "m1", "hello"}, {"ana", "c", "m1", "hello"}, {"ana", "c", "m1", "hello again"},
		{"ana", "d", "m1", "hello"}, {"eve", "c", "m1", "hello"},
	} {
		a := w.send("POST", uiPath, c.uid, says(c.chat, c.id, c.text))
		all := chunks(t, a)
		data := all[1]["data"].(map[string]any)
		key := fmt.Sprint(c.uid, c.chat, c.text)
		if is := data["runId"].(string); all[0]["messageId"] != is || runs[key] != "" && runs[key] != is {
			t.Errorf("%v is the run %v, and was %s", c, data, runs[key])
		}
		runs[key], threads[c.uid+c.chat] = data["runId"].(string), data["threadId"].(string)
	}
	if n := len(w.model.Requests()); n != 4 || len(threads) != 3 || threads["anac"] == threads["evec"] {
		t.Errorf("the model was asked %d times, the conversations are %v", n, threads)
	}
	if a := w.send("GET", uiPath+"/c/stream", "ana", ""); a.StatusCode != 204 || len(a.body) > 0 {
		t.Errorf("after the end: %d %s", a.StatusCode, a.body)
	}
	titles := w.send("GET", "/api/agent/threads", "eve", "")
	if titles.at("threads", "0", "title") != "hello" {
		t.Errorf("eve's conversations are %s", titles.body)
	}
}

// TestUIPlan shows a waiting plan in its conversation, and accepts an approval that is bound to its hash.
func TestUIPlan(t *testing.T) {
	w := moving(newPlans(t))
	w.model.Then(script.Turn{Text: "Hello."}, proposes("Tell him"))
	data := chunks(t, w.send("POST", uiPath, "ana", says("c", "m1", "hello")))[1]["data"].(map[string]any)
	there := wish(fmt.Sprintf(`,"threadId":%q`, data["threadId"]))
	a := w.send("POST", plansPath, "ana", there, header("Prefer", "wait=50"))
	a.is(t, 200, "status", "AWAITING_CONFIRMATION")
	ids := asked(t, w.send("GET", uiPath+"/c/stream", "ana", ""))
	if len(ids) != 1 || !strings.HasSuffix(ids[0], "~"+a.at("planHash")) {
		t.Fatalf("it asks for %v, and the plan is %s", ids, a.at("planHash"))
	}
	w.model.Then(acts, ends)
	again := asked(t, w.send("POST", uiPath, "ana", answers("c", map[string]bool{ids[0]: true})))
	if len(again) != 1 || len(w.sent) > 0 {
		t.Fatalf("confirmed, it asks for %v and has sent %v", again, w.sent)
	}
	all := chunks(t, w.send("POST", uiPath, "ana", answers("c", map[string]bool{again[0]: true})))
	if last := all[len(all)-1]; last["finishReason"] != "stop" || len(w.sent) != 1 {
		t.Errorf("it ends with %v and has sent %v", last, w.sent)
	}
}

// TestUIUndoWindow follows an approval that is held until the call has run. If the stream ended earlier, the client
// would answer repeatedly.
func TestUIUndoWindow(t *testing.T) {
	w := moving(newEnv(t))
	w.loop.UndoWindow = 300 * time.Millisecond
	w.wants("x")
	ids := asked(t, w.send("POST", uiPath, "ana", says("c", "m1", "mail bob")))
	all := chunks(t, w.send("POST", uiPath, "ana", answers("c", map[string]bool{ids[0]: true})))
	if last := all[len(all)-1]; last["finishReason"] != "stop" || len(w.sent) != 1 {
		t.Errorf("it ends with %v and has sent %v", last, w.sent)
	}
}

// TestUILimits checks that the general limits apply although unknown fields are ignored.
func TestUILimits(t *testing.T) {
	w := newEnv(t)
	for body, status := range map[string]int{
		`{"id":"c","id":"d","messages":[]}`: 400,
		`{"id":"c","messages":[],"x":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}`: 400,
		says("c", "m1", strings.Repeat("x", 32<<10+1)):                                           400,
		`{"x":"` + strings.Repeat("x", 1<<20) + `"}`:                                             413,
		`{"agent":"nobody",` + says("c", "m1", "hello")[1:]:                                      404,
	} {
		if a := w.send("POST", uiPath, "ana", body); a.StatusCode != status {
			t.Errorf("%.60s: %d %s", body, a.StatusCode, a.body)
		}
	}
	if a := w.send("GET", uiPath+"/"+strings.Repeat("x", 257)+"/stream", "ana", ""); a.StatusCode != 400 {
		t.Errorf("a long id: %d %s", a.StatusCode, a.body)
	}
}

// TestUIRunError checks that the error of a failed run is sent as a chunk.
func TestUIRunError(t *testing.T) {
	w := newEnv(t)
	w.model.Then(script.Turn{Err: fault.New(fault.Model, "broken", "The model is broken.")})
	all := chunks(t, w.send("POST", uiPath, "ana", says("c", "m1", "hello")))
	if c := all[len(all)-2]; c["type"] != "error" || c["errorText"] != "The model is broken." {
		t.Errorf("it ends with %v", all)
	}
}
