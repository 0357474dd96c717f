package demomodel

import (
	"strings"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

var talkRules = []rule{
	{phrases: phrases("… (help|what can you|who are you|what are you|how do you|how do i) …"), next: greet("")},
	{phrases: phrases("… (thanks|thank you|thx|cheers) …"), next: func(*ask) (fakegemini.Turn, bool) {
		return says("You are welcome.")
	}},
	{phrases: phrases("(hi|hello|hey|good morning|good afternoon|good evening|good day|greetings) …"),
		next: greet("Hello.")},
	{phrases: phrases("(bye|goodbye|see you) …"), next: func(*ask) (fakegemini.Turn, bool) { return says("Goodbye.") }},
}

func greet(said string) func(*ask) (fakegemini.Turn, bool) {
	return func(a *ask) (fakegemini.Turn, bool) { return words(join(said, a.abilities())), true }
}

// abilities says what the model is, and what it can do with the tools that it is offered.
func (d *dialogue) abilities() string {
	if d.onTerminal() || d.talksOfTerminal() {
		return onTerminals
	}
	var examples, others []string
	for _, r := range d.requests {
		if r.example != "" && d.tool(r.tool) != nil {
			examples = append(examples, r.example)
		}
	}
	for _, t := range d.tools {
		if !t.generic() && !d.ruled(t) {
			others = append(others, strings.Join(t.words, " "))
		}
	}
	said := "I am Countersign's offline demo model, no Gemini"
	if len(examples) > 0 {
		said += ": I understand plain requests " + strings.Join(examples, ", and ") + ", or several in one sentence"
	}
	said += ". With a GEMINI_API_KEY the real model answers instead."
	if len(others) > 0 {
		said += " What I can do here: " + excerpt(strings.Join(others, ", "), 120) + "."
	}
	if own := d.unruled(); len(own) > 0 {
		said += " Say “use " + own[0].Name + " with …” to call a tool by its name."
	}
	return said
}
