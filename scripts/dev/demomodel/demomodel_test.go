package demomodel_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/scripts/dev/demomodel"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// chat is a conversation with the model over HTTP, in the form of the Gemini API.
type chat struct {
	t        *testing.T
	url      string
	mode     string
	contents []json.RawMessage
}

func newChat(t *testing.T) *chat {
	s := httptest.NewServer(demomodel.New(func() time.Time { return now }))
	t.Cleanup(s.Close)
	return &chat{t: t, url: s.URL, mode: "AUTO"}
}

func (c *chat) body() []byte {
	declare := func(name string) map[string]any {
		return map[string]any{"name": name, "description": name,
			"parametersJsonSchema": map[string]any{"type": "object"}}
	}
	b, err := json.Marshal(map[string]any{
		"contents": c.contents,
		"tools": []any{map[string]any{"functionDeclarations": []any{declare("gmail_send"),
			declare("calendar_event_create")}}},
		"toolConfig": map[string]any{"functionCallingConfig": map[string]any{"mode": c.mode}},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

func (c *chat) post(method string) *http.Response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), "POST", c.url+"/v1beta/models/demo:"+method,
		bytes.NewReader(c.body()))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("x-goog-api-key", "k")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 {
		var b bytes.Buffer
		b.ReadFrom(res.Body)
		c.t.Fatalf("%s: %s", res.Status, b.String())
	}
	return res
}

// say adds the user's words and returns the model's answer.
func (c *chat) say(prompt string) fakegemini.Content {
	c.t.Helper()
	return c.ask(map[string]any{"role": "user", "parts": []any{map[string]any{"text": prompt}}})
}

func (c *chat) ask(content any) fakegemini.Content {
	c.t.Helper()
	raw, err := json.Marshal(content)
	if err != nil {
		c.t.Fatal(err)
	}
	c.contents = append(c.contents, raw)
	var out struct {
		Candidates []struct{ Content json.RawMessage }
	}
	if err := json.NewDecoder(c.post("generateContent").Body).Decode(&out); err != nil || len(out.Candidates) != 1 {
		c.t.Fatalf("no candidate: %v", err)
	}
	c.contents = append(c.contents, out.Candidates[0].Content)
	var answer fakegemini.Content
	if err := json.Unmarshal(out.Candidates[0].Content, &answer); err != nil {
		c.t.Fatal(err)
	}
	return answer
}

// respond answers the calls, in their order.
func (c *chat) respond(calls fakegemini.Content, responses ...string) string {
	c.t.Helper()
	var parts []any
	for i, r := range responses {
		call := calls.Parts[i].FunctionCall
		parts = append(parts, map[string]any{"functionResponse": map[string]any{"id": call.ID, "name": call.Name,
			"response": json.RawMessage(r)}})
	}
	return textOf(c.ask(map[string]any{"role": "user", "parts": parts}))
}

func textOf(c fakegemini.Content) string {
	var b strings.Builder
	for _, p := range c.Parts {
		if p.Text != nil {
			b.WriteString(*p.Text)
		}
	}
	return b.String()
}

func names(c fakegemini.Content) (out []string) {
	for _, p := range c.Parts {
		if p.FunctionCall != nil {
			out = append(out, p.FunctionCall.Name)
		}
	}
	return out
}

const both = "email ana@example.com that the demo is at ten and put it in my calendar tomorrow at ten"

func TestTwoRequestsInOneTurn(t *testing.T) {
	c := newChat(t)
	answer := c.say(both)
	if got := strings.Join(names(answer), " "); got != "gmail_send calendar_event_create" {
		t.Fatalf("called %q", got)
	}
	if got, want := string(answer.Parts[0].FunctionCall.Args),
		`{"to":["ana@example.com"],"subject":"The demo is at ten","body":"The demo is at ten."}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := c.respond(answer, `{"output":{"messageId":"m1"}}`,
		`{"error":"The user rejected this; it was not done. The user says: too early"}`),
		"The mail to ana@example.com was sent. The event “The demo is at ten” on Thursday, 19 November 2026 at 10:00 "+
			"was not created: you rejected it. The user says: too early"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestReportOutcomes(t *testing.T) {
	for name, c := range map[string]struct{ response, want string }{
		"done": {`{"output":{"messageId":"m1","threadId":"t1"}}`,
			"The mail to ana@example.com was sent."},
		"done, another form": {`{"messageId":"m1"}`, "The mail to ana@example.com was sent."},
		"done, inferred": {`{"output":{"inferred":true}}`,
			"The mail to ana@example.com was sent, as far as I can tell: its draft is gone."},
		"edited": {`{"output":{"result":{"messageId":"m1"},"executedArgs":{"to":["bob@x.com"],"subject":"s","body":"b"},"editedBy":"user"}}`,
			"The mail to bob@x.com was sent, with your changes."},
		"confirmed": {`{"output":"The user confirmed that it was done."}`,
			"The mail to ana@example.com was sent, as you confirmed."},
		"rejected": {`{"error":"The user rejected this; it was not done."}`,
			"The mail to ana@example.com was not sent: you rejected it."},
		"failed": {`{"error":"to/0: this is no address"}`,
			"The mail to ana@example.com was not sent. to/0: this is no address"},
		"unknown": {`{"error":"It is not known whether this was done. Gmail does not answer."}`,
			"It is not known whether the mail to ana@example.com was sent. Gmail does not answer."},
		"unreadable": {`{"output":[1]}`,
			"It is not known whether the mail to ana@example.com was sent. The tool's answer is unclear."},
	} {
		t.Run(name, func(t *testing.T) {
			chat := newChat(t)
			if got := chat.respond(chat.say("email ana@example.com that the demo is at ten"),
				c.response); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestCallingModeNone(t *testing.T) {
	c := newChat(t)
	c.mode = "NONE"
	answer := c.say(both)
	if len(names(answer)) > 0 || !strings.Contains(textOf(answer), "nothing was done") {
		t.Errorf("got calls %v and the text %q", names(answer), textOf(answer))
	}
}

func TestAnswerToMissingPart(t *testing.T) {
	for name, c := range map[string]struct{ prompt, question, answer, args string }{
		"who": {"email Ana that the demo is at ten", "Who should get", "ana@example.com",
			`{"to":["ana@example.com"],"subject":"The demo is at ten","body":"The demo is at ten."}`},
		"what": {"email ana@example.com", "What should", "the demo is at ten",
			`{"to":["ana@example.com"],"subject":"The demo is at ten","body":"The demo is at ten."}`},
		"when": {"schedule lunch with ana@example.com", "When should", "tomorrow at noon",
			`{"summary":"Lunch","start":"2026-11-19T12:00:00","end":"2026-11-19T13:00:00","timeZone":"UTC","attendees":["ana@example.com"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			chat := newChat(t)
			if q := textOf(chat.say(c.prompt)); !strings.HasPrefix(q, c.question) {
				t.Fatalf("asked %q", q)
			}
			answer := chat.say(c.answer)
			if len(names(answer)) != 1 {
				t.Fatalf("said %q", textOf(answer))
			}
			if got := string(answer.Parts[0].FunctionCall.Args); got != c.args {
				t.Errorf("got  %s\nwant %s", got, c.args)
			}
		})
	}
}

func TestSmallTalk(t *testing.T) {
	for _, prompt := range []string{"hello", "what can you do?", "write a poem", "the weather is fine"} {
		c := newChat(t)
		if got := textOf(c.say(prompt)); !strings.Contains(got, "offline demo model") ||
			!strings.Contains(got, "email ana@example.com") {
			t.Errorf("%q: answered %q", prompt, got)
		}
	}
	c := newChat(t)
	if got := textOf(c.say("the weather is fine")); !strings.Contains(got, "the weather is fine") {
		t.Errorf("it does not say what it was told: %q", got)
	}
	c = newChat(t)
	if got := textOf(c.say("thanks!")); got != "You are welcome." {
		t.Errorf("answered %q", got)
	}
	c = newChat(t)
	if got := textOf(c.say("email ana@example.com that " + strings.Repeat("very ", 2000) + "long")); !strings.HasPrefix(
		got, "That is longer") {
		t.Errorf("answered %.100q", got)
	}
}

func TestStreamPieces(t *testing.T) {
	c := newChat(t)
	raw, _ := json.Marshal(map[string]any{"role": "user", "parts": []any{map[string]any{"text": "hello"}}})
	c.contents = append(c.contents, raw)
	var b bytes.Buffer
	if _, err := b.ReadFrom(c.post("streamGenerateContent?alt=sse").Body); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "data: "); n < 10 {
		t.Errorf("%d events:\n%s", n, b.String())
	}
}
