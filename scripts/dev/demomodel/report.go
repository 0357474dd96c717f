package demomodel

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/toolbox"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// step is a call that was answered.
type step struct {
	name              string
	args              json.RawMessage // the arguments as they were executed
	raw               json.RawMessage // the answer
	body              any             // the tool's result
	failed            string          // why it failed; empty if it succeeded
	edited            bool            // the user changed the arguments
	cancelled, proven bool            // it was undone later; its success is certain and not only inferred
}

// stepsOf returns the answered calls after the user's last words.
func stepsOf(contents []fakegemini.Content) (steps []step) {
	var made []fakegemini.FunctionCall
	for _, c := range contents {
		for _, p := range c.Parts {
			switch {
			case c.Role == "user" && p.Text != nil && !servers.MatchString(*p.Text):
				steps, made = nil, nil
			case p.FunctionCall != nil:
				made = append(made, *p.FunctionCall)
			case p.FunctionResponse != nil && len(steps) < len(made):
				call := made[len(steps)]
				s := step{name: call.Name, args: call.Args, raw: p.FunctionResponse.Response, proven: true}
				var v any
				_ = json.Unmarshal(p.FunctionResponse.Response, &v) // it came as JSON
				s.open(v)
				steps = append(steps, s)
			}
		}
	}
	return steps
}

// open unwraps an answer: {"output": …}, {"result": …}, JSON as text, and {"ok": false, …} or {"error": …} for a
// failure.
func (s *step) open(v any) {
	if inner, ok := parse(v); ok {
		v = inner
	}
	m, ok := v.(map[string]any)
	if !ok {
		s.body = v
		return
	}
	s.cancelled = s.cancelled || m["cancelled"] == true
	s.proven = s.proven && m["inferred"] != true
	if args, ok := m["executedArgs"]; ok {
		s.edited = true
		s.args, _ = strictjson.Marshal(args) // it came as JSON
	}
	if e, ok := m["error"]; ok {
		s.failed = errorWords(e)
		return
	}
	if ok, given := m["ok"].(bool); given && !ok {
		s.failed = errorWords(m["message"])
		return
	}
	for _, envelope := range []string{"output", "result"} {
		if inner, ok := m[envelope]; ok {
			s.open(inner)
			return
		}
	}
	s.body = m
}

// parse decodes a text that is a JSON object.
func parse(v any) (inner any, ok bool) {
	s, ok := v.(string)
	ok = ok && strings.HasPrefix(s, "{") && json.NewDecoder(strings.NewReader(s)).Decode(&inner) == nil
	return inner, ok
}

func errorWords(e any) string {
	switch e := e.(type) {
	case string:
		if at := strings.IndexByte(e, '{'); at >= 0 { // the page's own answer may be inside a sentence
			if inner, ok := parse(e[at:]); ok {
				s := step{}
				if s.open(inner); s.failed != "" {
					return s.failed
				}
			}
		}
		return excerpt(e, 1000)
	case map[string]any:
		return errorWords(e["message"])
	}
	return "No reason was given."
}

// reads decodes the arguments and the result of the call, and reports whether they have the expected types.
func (s step) reads(args, result any) bool {
	raw, err := json.Marshal(s.body)
	return err == nil && json.Unmarshal(s.args, args) == nil && json.Unmarshal(raw, result) == nil
}

// report describes the outcomes of the calls.
func (d *dialogue) report() string {
	said := make([]string, len(d.done))
	for i, s := range d.done {
		said[i] = d.describe(s)
	}
	return strings.Join(said, " ")
}

func (d *dialogue) describe(s step) string {
	if s.name == toolbox.TakeBackTool {
		return d.tookBack(s)
	}
	for _, r := range d.requests {
		if r.tool != s.name {
			continue
		}
		if _, list := s.body.([]any); list {
			s.failed = "The tool's answer is unclear."
		}
		if r.tell != nil && s.failed == "" {
			return r.tell(d, s)
		}
		return s.outcome(r.about(s.args), r.done)
	}
	said := s.outcome("“"+s.name+"”", "done")
	if s.failed != "" {
		return said
	}
	return join(said, returned(s.body))
}

var (
	rejected = lazyregexp.New(`(?i)^the user (?:rejected|took the approval of) this\b[^.]*\.?\s*`)
	undone   = lazyregexp.New(`(?i)^the user took the approval of this back\b`)
	notKnown = lazyregexp.New(`(?i)^it is not known whether this was done\.\s*`)
	unknown  = lazyregexp.New(`(?i)\b(?:nobody can tell|unknown|not known|cannot be known|unclear)\b`)
)

// refusal describes the user's refusal of a call that failed in this way.
func refusal(failed string) string {
	if undone.MatchString(failed) {
		return "you took your approval back"
	}
	return "you rejected it"
}

// outcome reports whether the call was done.
func (s step) outcome(what, done string) string {
	comment := s.failed[len(rejected.FindString(s.failed)):]
	answer, _ := s.body.(string)
	switch {
	case comment != s.failed:
		return join(capitalise(what)+" was not "+done+": "+refusal(s.failed)+".", comment)
	case unknown.MatchString(s.failed):
		return join("It is not known whether "+what+" was "+done+".", s.failed[len(notKnown.FindString(s.failed)):])
	case s.failed != "":
		return capitalise(what) + " was not " + done + ". " + s.failed
	case s.cancelled:
		return capitalise(what) + " was " + done + ", and was deleted again by its owner."
	case s.edited:
		return capitalise(what) + " was " + done + ", with your changes."
	case strings.HasPrefix(answer, "The user confirmed"):
		return capitalise(what) + " was " + done + ", as you confirmed."
	case !s.proven:
		return capitalise(what) + " was " + done + ", as far as I can tell: its draft is gone."
	}
	return capitalise(what) + " was " + done + "."
}

// returned describes the result of a tool that no rule knows. A result with a single value is only that value.
func returned(body any) string {
	if m, ok := body.(map[string]any); ok && len(m) == 1 {
		body = children(m)[0]
	}
	said := scalar(body)
	if raw, err := strictjson.Marshal(body); said == "" && err == nil {
		said = strings.Trim(string(raw), `"`)
	}
	if said == "" || said == "{}" || said == "null" {
		return ""
	}
	return "It answered: " + excerpt(said, 1000)
}

// failures names the calls that were not done.
func (d *dialogue) failures() string {
	var said []string
	for _, s := range d.done {
		switch t := d.tool(s.name); {
		case s.failed == "":
		case t != nil && t.onPage(): // the page's user knows its buttons, but no tools
			said = append(said, "That was not done: "+s.failed)
		default:
			said = append(said, fmt.Sprintf("“%s” was not done: %s", s.name, s.failed))
		}
	}
	return strings.Join(said, " ")
}

// scalar returns a text or a number as text.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strings.TrimSuffix(fmt.Sprintf("%.2f", v), ".00")
	}
	return ""
}
