package demomodel

import (
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

var talkRules = []rule{
	{phrases: phrases("(what|what's) [is] [there] (on|in|planned|scheduled) …",
		"(what do i have|when is my|do i have|when am i|what have i) …",
		"(show|list|read) [me] [my] (calendar|agenda|diary) …", "… (am i|are we) (free|busy) …"),
		next: noReading},
	{phrases: phrases("what did i [just] (say|ask|want|tell) …", "what was my last (request|message|question) …"),
		next: saidBefore},
	{phrases: phrases("what (did|have) you [just] (do|done|say|said|answer) …"), next: answeredBefore},
	{phrases: phrases("(what time|what's the time|what is the time|what day|what date|what's the date|what is the "+
		"date|"+
		"which day|which date) [is] [it] [(now|today|it|there)]", "(what is|what's) today"), next: clockNow},
	{phrases: phrases("(yes|yep|yeah|sure|ok|okay|do it|go ahead|please do|approve|approved|confirm|send it) " +
		"[(please|it|do it|go ahead|sure)]"), next: toYes},
	{phrases: phrases("[(oh|ok|okay|wait|sorry|actually|hm|hmm)] " + noWords + "[" + noWords + "] [" + noWords + "] " +
		"[(thanks|thank you|please|after all|again)]"), next: toNo},
	{phrases: phrases("(did you|have you|was it|is it|has it been|did it|what did you) (send|sent|do|done|created|" +
		"create|made|work|book|booked) …"),
		next: onTheRecord},
	{phrases: phrases("(what happens|what if|what will happen|what would happen) …"), next: nothingIsLost},
	{phrases: phrases("(how do i|how can i|can i|how to|how would i) [still] (undo|unsend|recall|take back|cancel|" +
		"delete|edit|change|correct|approve|reject) …"), next: howToDecide},
	{phrases: phrases("(cancel|delete|remove|undo|move|reschedule|change|edit|archive) …"), next: noChange},
	{phrases: phrases("(reply|forward|respond) …"), next: noReply},
	{phrases: phrases("… (help|what can you|what can i|what is countersign|is this real|can you help|who are you|"+
		"what are you|who made you|how do you|how do i|how does this|"+
		"how does it|how are you|what's your name|what is your name|what model|which model|what is this) …", "are "+
		"you …"), next: greet("")},
	{phrases: phrases("(send|write|read|make|schedule|book|search) [my] (emails|mails|e-mails|events|meetings|" +
		"messages|appointments|" +
		"calendar|mail)"), next: greet("Yes.")},
	{phrases: phrases("… (thanks|thank you|thx|cheers) …"), next: func(*ask) (fakegemini.Turn, bool) {
		return says("You are welcome.")
	}},
	{phrases: phrases("(hi|hello|hey|good morning|good afternoon|good evening|good day|greetings) …",
		"say (hi|hello|hey|something) [(please|again)]"),
		next: greet("Hello.")},
	{phrases: phrases("(bye|goodbye|see you) …"), next: func(*ask) (fakegemini.Turn, bool) { return says("Goodbye.") }},
}

// noWords holds the phrases that withdraw a request.
const noWords = " (no|nope|never mind|nevermind|forget it|forget that|forget about it|cancel|cancel it|cancel that|" +
	"cancel the (card|mail|email|event|meeting|lunch|call)|reject it|stop|stop it|leave it|drop it|scrap it|" +
	"wait|scrap that|don't|dont|do not|don't do it|don't send it|dont send it|not now|please|then|actually) "

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
	return says("That was the first that you said in this conversation, as far as I know.")
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

// onTheRecord answers whether the earlier requests were executed.
func onTheRecord(a *ask) (fakegemini.Turn, bool) {
	n := len(a.said) - 2
	switch {
	case n < 0:
		return says("Nothing was asked for before that, as far as I know.")
	case wasDone.MatchString(a.answers[n]) || onRecord.MatchString(a.came[n]):
		return says("Yes, it is on the record as done; the audit has it.")
	}
	return says("Not as far as I know: it is not on the record as done. A card may still wait for you.")
}

// clockNow returns the user's local time in words.
func clockNow(a *ask) (fakegemini.Turn, bool) {
	zone := a.now.Location().String()
	if zone == "Local" {
		zone = "here"
	}
	return says("It is %s (%s).", a.now.Format("15:04 on "+longDate), zone)
}

// toYes answers a yes that follows no question of the model. The yes to a card is given on the card.
func toYes(a *ask) (fakegemini.Turn, bool) {
	if n := len(a.said) - 2; strings.TrimSpace(a.last()) == "" || n >= 0 && strings.HasSuffix(a.answerTo(n), "?") {
		return declined()
	}
	return says("A card is approved on the card itself, with its button; my words approve nothing. I have nothing " +
		"else open that waits for a yes.")
}

func toNo(*ask) (fakegemini.Turn, bool) {
	return says("I do nothing further about it. A card that waits is rejected on the card itself; to have " +
		"something else, " +
		"please say what.")
}

func noChange(a *ask) (fakegemini.Turn, bool) {
	if a.tool(eventTool) == nil || slices.ContainsFunc(a.tools, (*offered).onPage) {
		return declined()
	}
	return says("I can neither change nor delete existing events, so I did nothing about it. " + deleteIt +
		" A card that waits is rejected on the card itself.")
}

// deleteIt explains how a user undoes an event.
const deleteIt = "An event that was made here you can delete: open “Exactly what” where it was done, and press " +
	"“Delete the event”."

// nothingIsLost explains what happens to a request in the meantime.
func nothingIsLost(*ask) (fakegemini.Turn, bool) {
	return says("Nothing is lost: what you ask for is kept by the server, over a reload and a restart too. What " +
		"needs your approval waits in your inbox until you decide, or until it expires, and then nothing was done.")
}

// howToDecide explains how to decide about a waiting call, and how to undo a completed one.
func howToDecide(a *ask) (fakegemini.Turn, bool) {
	if a.tool(mailTool) == nil && a.tool(eventTool) == nil {
		return declined()
	}
	return says("On its card: what waits can be edited, approved and rejected there, and what was approved has Undo "+
		"for a few seconds before it begins. An e-mail that was sent cannot be withdrawn. %s", deleteIt)
}

func noReply(a *ask) (fakegemini.Turn, bool) {
	if a.tool(mailTool) == nil {
		return declined()
	}
	return says("I can neither reply to an e-mail nor forward one, so I did nothing. I can send a new one: “email … " +
		"that …”.")
}

// answerTo returns the text that answered the nth prompt, or nothing if only a call answered it.
func (d *dialogue) answerTo(n int) string {
	if n < len(d.answers) {
		return strings.TrimSpace(d.answers[n])
	}
	return ""
}

func greet(said string) func(*ask) (fakegemini.Turn, bool) {
	return func(a *ask) (fakegemini.Turn, bool) { return words(join(said, a.abilities())), true }
}

// whoIAm is the model's description of itself.
const whoIAm = "I'm Countersign's offline demo model, not Gemini."

// abilities describes the model, and the requests that the offered tools support.
func (d *dialogue) abilities() string {
	said := whoIAm
	if examples := d.examples(); len(examples) > 0 {
		said += " Try one of these:\n- " + strings.Join(examples, "\n- ")
	}
	if own := d.unruled(); len(own) > 0 && !given.MatchString(d.System) && !d.onTerminal() {
		said += "\nSay “use " + own[0].Name + " with …” to call a tool by its name."
	}
	return said
}

// given matches the example requests in the instructions.
var given = lazyregexp.New(`(?m)^` + registry.ExamplesAre + `\n((?:- .*(?:\n|$))+)`)

// maxExamples is the maximum number of example requests that the model suggests.
const maxExamples = 3

// examples returns requests to try: those of the surface, or of the rules whose tools are offered, or the tools' names.
func (d *dialogue) examples() (out []string) {
	if m := given.FindStringSubmatch(d.System); m != nil {
		for line := range strings.Lines(m[1]) {
			out = append(out, strings.TrimSpace(strings.TrimPrefix(line, "- ")))
		}
		return out[:min(len(out), maxExamples)]
	}
	if d.onTerminal() || d.talksOfTerminal() {
		return onTerminals
	}
	onPage := slices.ContainsFunc(d.tools, (*offered).onPage)
	for _, r := range d.requests {
		if r.example != "" && d.tool(r.tool) != nil && !onPage {
			out = append(out, r.example)
		}
	}
	for _, t := range d.tools {
		if !t.generic() && !d.ruled(t) && (t.onPage() || t.is(actionKind) || !onPage) {
			out = append(out, strings.TrimPrefix(strings.Join(t.words, " "), actionKind+" "))
		}
	}
	return out[:min(len(out), maxExamples)]
}
