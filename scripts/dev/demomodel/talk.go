package demomodel

import (
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

var talkRules = []rule{
	{phrases: phrases("(what|what's) [is] [there] (on|in|planned|scheduled) …",
		"(what do i have|when is my|do i have|when am i|what have i) …",
		"(show|list|read) [me] [my] (calendar|agenda|diary) …", "… (am i|are we) (free|busy) …"),
		next: noReading},
	{phrases: phrases("what did i (say|ask|want) …", "what was my last (request|message|question) …"),
		next: saidBefore},
	{phrases: phrases("what (did|have) you (do|done|say|said|answer) …"), next: answeredBefore},
	{phrases: phrases("… (help|what can you|who are you|what are you|how do you|how do i) …"), next: greet("")},
	{phrases: phrases("… (thanks|thank you|thx|cheers) …"), next: func(*ask) (fakegemini.Turn, bool) {
		return says("You are welcome.")
	}},
	{phrases: phrases("(hi|hello|hey|good morning|good afternoon|good evening|good day|greetings) …"),
		next: greet("Hello.")},
	{phrases: phrases("(bye|goodbye|see you) …"), next: func(*ask) (fakegemini.Turn, bool) { return says("Goodbye.") }},
}

func noReading(a *ask) (fakegemini.Turn, bool) {
	if a.tool(eventTool) == nil {
		return declined()
	}
	return says("I cannot read your calendar; I can only ask to put events into it.")
}

func saidBefore(a *ask) (fakegemini.Turn, bool) {
	if n := len(a.said) - 2; n >= 0 {
		return says("Before that you said: “%s”.", excerpt(a.said[n], 200))
	}
	return says("That was the first that you said in this conversation, as far as I am told.")
}

func answeredBefore(a *ask) (fakegemini.Turn, bool) {
	n := len(a.said) - 2
	switch {
	case n < 0:
		return saidBefore(a)
	case a.answerTo(n) == "":
		return says("I asked for what you see above; the cards and the audit say what became of it.")
	}
	return says("I answered: “%s”.", excerpt(a.answerTo(n), 200))
}

func greet(said string) func(*ask) (fakegemini.Turn, bool) {
	return func(a *ask) (fakegemini.Turn, bool) { return words(join(said, a.abilities())), true }
}

// abilities says what the model is, and what it can do with the tools that it is offered.
func (d *dialogue) abilities() string {
	if d.onTerminal() || d.talksOfTerminal() {
		return onTerminals
	}
	const who = "I am Countersign's offline demo model, no Gemini."
	var examples, others []string
	onPage := slices.ContainsFunc(d.tools, (*offered).onPage)
	for _, r := range d.requests {
		if r.example != "" && d.tool(r.tool) != nil && !onPage {
			examples = append(examples, r.example)
		}
	}
	if len(examples) == 2 {
		examples = append(examples, strings.Join(examples, " and "))
	}
	for _, t := range d.tools {
		if !t.generic() && !d.ruled(t) && (t.onPage() || t.is(actionKind) || !onPage) {
			others = append(others, strings.Join(t.words, " "))
		}
	}
	said := who
	if len(examples) > 0 {
		said += " Try: “" + strings.Join(examples, "”, “") + "”."
	}
	if len(others) > 0 {
		said += " What I can do here: " + excerpt(strings.Join(others, ", "), 120) + "."
	}
	if own := d.unruled(); len(own) > 0 {
		said += " Say “use " + own[0].Name + " with …” to call a tool by its name."
	}
	return said
}
