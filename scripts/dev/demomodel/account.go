package demomodel

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// step is a call since the user's last words, and its outcome.
type step struct {
	name   string
	body   any    // the tool's answer
	failed string // why not, in words; empty if it was done
	raw    json.RawMessage
}

// stepsOf returns the answered calls after the user's last words.
func stepsOf(contents []fakegemini.Content) (steps []step) {
	var calls []fakegemini.FunctionCall
	for _, c := range contents {
		for _, p := range c.Parts {
			switch {
			case c.Role == "user" && p.Text != nil:
				steps, calls = nil, nil
			case p.FunctionCall != nil:
				calls = append(calls, *p.FunctionCall)
			case p.FunctionResponse != nil && len(steps) < len(calls):
				steps = append(steps, stepOf(calls[len(steps)], p.FunctionResponse.Response))
			}
		}
	}
	return steps
}

func stepOf(c fakegemini.FunctionCall, raw json.RawMessage) step {
	s := step{name: c.Name, raw: raw}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		s.failed = "Its answer is unclear."
		return s
	}
	s.body, s.failed = open(v)
	return s
}

// open unwraps an answer: {"output": …}, {"result": …}, JSON as text, and {"ok": false, …} or {"error": …} for a
// failure.
func open(v any) (body any, failed string) {
	if text, ok := v.(string); ok {
		inner, isJSON := parse(text)
		if !isJSON {
			return text, ""
		}
		v = inner
	}
	m, ok := v.(map[string]any)
	if !ok {
		return v, ""
	}
	if e, ok := m["error"]; ok {
		return nil, errorWords(e)
	}
	if done, ok := m["ok"].(bool); ok && !done {
		return nil, errorWords(m["message"])
	}
	for _, envelope := range []string{"output", "result"} {
		if inner, ok := m[envelope]; ok {
			return open(inner)
		}
	}
	return m, ""
}

func errorWords(e any) string {
	switch e := e.(type) {
	case string:
		if at := strings.IndexByte(e, '{'); at >= 0 { // the page's own answer may be inside a sentence
			if inner, isJSON := parse(e[at:]); isJSON {
				if _, failed := open(inner); failed != "" {
					return failed
				}
			}
		}
		return excerpt(e)
	case map[string]any:
		return errorWords(e["message"])
	}
	return "No reason was given."
}

// done returns the newest step of the tool.
func (p page) done(tool string) (step, bool) {
	for _, s := range slices.Backward(p.steps) {
		if s.name == tool {
			return s, true
		}
	}
	return step{}, false
}

// acted reports whether the page was used since the user's last words.
func (p page) acted() bool {
	return slices.ContainsFunc(p.steps, func(s step) bool { return !isAction(s.name) })
}

func isAction(tool string) bool { return strings.HasPrefix(tool, actionKind+"_") }

// account returns a sentence that says that everything was done, or what was not.
func (p page) account(done string) string {
	if failed := p.failures(); failed != "" {
		return failed
	}
	return done
}

func (p page) failures() string {
	var said []string
	for _, s := range p.steps {
		if s.failed != "" {
			said = append(said, fmt.Sprintf("“%s” was not done: %s", s.name, s.failed))
		}
	}
	return strings.Join(said, " ")
}

// outcome describes the outcome of an action that may have waited for its user.
func (s step) outcome(what, done string) string {
	return sayOutcome(what, done, readResponse(s.raw))
}

// found lists the results of the search.
func (p page) found() string {
	search, _ := p.find(actionKind, "search", "find")
	done, _ := p.done(search.Name)
	var said []string
	for _, i := range itemsIn(done.body) {
		said = append(said, i.name()+priced(i))
	}
	return "I found " + strings.Join(said, ", ") + "."
}

func priced(i item) string {
	if price := i.text("price"); price != "" {
		return " (" + price + ")"
	}
	return ""
}

// inCart describes the contents of the cart, from the page's state alone.
func (s state) inCart() string {
	parts := s.named("cart")
	if len(parts) == 0 {
		return "I see no cart on this page."
	}
	var things, others []string
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		for _, i := range items(parts[name]) {
			if i.name() == "" { // a note that items were left out
				continue
			}
			things = append(things, strings.TrimSpace(counted(i)+i.name()+priced(i)))
		}
		if text := scalar(parts[name]); text != "" && !slices.Contains(wordsOf(name), "count") {
			others = append(others, strings.TrimSpace(
				strings.Join(slices.DeleteFunc(wordsOf(name), func(w string) bool { return w == "cart" }), " ")+" "+
					text))
		}
	}
	if len(things) == 0 {
		return "The cart is empty."
	}
	said := "In the cart: " + strings.Join(things, ", ") + "."
	if len(others) > 0 {
		said += " " + capitalise(strings.Join(others, ", ")) + "."
	}
	return said
}

func counted(i item) string {
	if n := i.text("quantity"); n != "" {
		return n + " × "
	}
	return ""
}

// answer returns the page's text under a name that contains the word.
func (s state) answer(word string) string {
	parts := s.named(word)
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if text := scalar(parts[name]); slices.Contains([]string{word, word + " answer"},
			strings.Join(wordsOf(name), " ")) && strings.Contains(text, " ") {
			return "The page says: “" + excerpt(text) + "”"
		}
	}
	return ""
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

// abilities lists what the assistant can do on the page.
func (s surface) abilities() string {
	var names []string
	for _, c := range s.tools {
		if c.kind != triggerTool && c.kind != fillTool {
			names = append(names, strings.Join(wordsOf(c.Name), " "))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "What I can do here: " + excerpt(strings.Join(names, ", ")) + "."
}
