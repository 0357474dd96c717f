package demomodel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/toolbox"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// asked matches the server's record of a proposal that may still wait for its user.
var asked = lazyregexp.New(`the outcome is not known yet: (.+)`)

// numbered matches the server's list of waiting proposals, in a conversation that a page keeps.
var numbered = lazyregexp.New(`these proposals wait for the user's decision: (\[.+\])`)

// waits is a proposal that may still wait: the title of its card, and the user's words that caused it.
type waits struct{ title, words string }

// named reports whether the title or the words have the word.
func (w waits) named(word string) bool {
	return strings.Contains(strings.ToLower(w.title+" "+w.words), word)
}

func (w waits) String() string {
	if w.words == "" {
		return w.title
	}
	return w.title + ", for “" + excerpt(w.words, 120) + "”"
}

// takesBack are phrases that withdraw a waiting proposal; {card} names it.
var takesBack = phrases("[(oh|no|nope|sorry|ok|okay)] (cancel|withdraw|reject|drop|scrap|forget|revoke|stop|undo|"+
	"call off|take back|never mind) [about] {card}",
	"[(oh|no|nope|sorry|ok|okay)] take {card} back [(please|again|after all)]",
	"[(oh|no|nope|sorry|ok|okay)] (don't|dont|do not) (send|mail|email|write|create|book|schedule|do|make) {card}",
	"[(oh|no|nope|sorry)] i [have] changed my mind [(sorry|thanks|please)]",
	"[(oh|no|nope|sorry)] i [(do not|don't|dont|no longer)] want (it|that|this|them) [(anymore|any more|any longer)]",
	"[(oh|ok|okay|wait|sorry|actually|hm|hmm|no|nope)] "+noWords+"["+noWords+"] ["+noWords+"] "+
		"[(thanks|thank you|please|after all|again)]")

// firm matches words that must accompany a weak word such as "wait", which alone withdraws nothing.
var firm = lazyregexp.New(`(?i)\b(?:no|nope|never\s?mind|forget|cancel|reject|stop|leave it|drop|scrap|don['’]?t|` +
	`do not|withdraw|revoke|undo|call off|take|mind|longer)\b`)

// whichOne matches the answer to the question about which proposal is meant.
var whichOne = phrases("[(no|oh|the|please|take back|cancel)] [the] {which|first|second|third|last|former|latter|1st|" +
	"2nd|3rd|both|all} [(one|card|mail|email|event|of them|please)]")

// whichCard begins the question about which of several cards is meant.
const whichCard = "Which of these do I take back?"

// takingBack returns the turn for words that withdraw an earlier proposal, if the server offers that.
func (d *dialogue) takingBack(prompt text) (fakegemini.Turn, bool) {
	if !d.mayTakeBack || len(d.waits) == 0 || len(d.done) > 0 {
		return declined()
	}
	if n := len(d.said) - 2; n >= 0 && strings.HasPrefix(d.answerTo(n), whichCard) {
		for _, p := range whichOne {
			if slots, _, ok := p.match(prompt); ok {
				return d.takeBack(d.placed(strings.ToLower(slots["which"].plain())))
			}
		}
	}
	for _, p := range takesBack {
		if slots, _, ok := p.match(prompt); ok && firm.MatchString(prompt.mask) {
			return d.takeBack(d.meant(strings.ToLower(slots["card"].plain())))
		}
	}
	return declined()
}

// placed returns the number of the waiting proposal at a position, or the numbers of all.
func (d *dialogue) placed(which string) (numbers []int, all bool) {
	at, one := places[which]
	for i := range d.waits {
		if !one || i == at || at < 0 && i == len(d.waits)-1 {
			numbers = append(numbers, i+1)
		}
	}
	return numbers, !one
}

var (
	allOfThem = lazyregexp.New(`\b(?:both|all|everything|them)\b`)
	// noTitle matches words of a request that do not identify a proposal.
	noTitle = lazyregexp.New(`^(?:|it|that|this|the|my|a|an|one|card|cards|please|after|again|thanks|to|with|for|of|` +
		`about|at|on|in|and|today|tomorrow|tonight|noon|\d+|\d+:\d+|am|pm|(?:mon|tues|wednes|thurs|fri|satur|sun)day)$`)
	mailCard  = lazyregexp.New(`^(?:e-?mails?|mails?|messages?)$`)
	eventCard = lazyregexp.New(`^(?:events?|meetings?|calls?|appointments?|lunch|dinner|breakfast)$`)
)

// meant returns the numbers of the waiting proposals that the words may refer to: those that contain all names in the
// words.
func (d *dialogue) meant(words string) (numbers []int, all bool) {
	if allOfThem.MatchString(words) {
		return d.placed("all")
	}
	for _, w := range strings.Fields(words) {
		if at, ok := places[w]; ok && at < len(d.waits) {
			return d.placed(w)
		}
	}
	for i, card := range d.waits {
		fits := func(w string) bool {
			w = strings.Trim(w, ".,;:!?“”\"'")
			return noTitle.MatchString(w) || card.named(w) || mailCard.MatchString(w) && card.named("mail") ||
				eventCard.MatchString(w) && card.named("event")
		}
		if !slices.ContainsFunc(strings.Fields(words), func(w string) bool { return !fits(w) }) {
			numbers = append(numbers, i+1)
		}
	}
	return numbers, false
}

// takeBack returns the call that withdraws the proposals, or the question about which of the waiting ones is meant.
func (d *dialogue) takeBack(numbers []int, all bool) (fakegemini.Turn, bool) {
	switch {
	case len(numbers) == 0:
		return declined()
	case len(numbers) == 1 || all:
		return calls(fakegemini.Call{Name: toolbox.TakeBackTool, Args: toolbox.TakeBackArgs{Which: numbers}})
	}
	list := ""
	for i, card := range d.waits {
		list += fmt.Sprintf(" (%d) %s;", i+1, card)
	}
	return says("%s%s say “the first”, “the last” or “all”; nothing was taken back yet.", whichCard, list)
}

// tookBack describes the outcome of a call that withdraws proposals.
func (d *dialogue) tookBack(s step) string {
	var args toolbox.TakeBackArgs
	var came toolbox.TakenBack
	body, err := strictjson.Marshal(s.body)
	if s.failed != "" || err != nil || json.Unmarshal(s.args, &args) != nil || json.Unmarshal(body, &came) != nil {
		return "I took nothing back. " + s.failed
	}
	cards := came.TakenBack
	if len(came.Decided) == 0 { // all named proposals, by the names that their user knows
		cards = nil
		for _, n := range args.Which {
			cards = append(cards, d.waits[n-1].String())
		}
	}
	said := ""
	if len(cards) > 0 {
		said = "Taken back, and nothing was done: " + strings.Join(cards, "; ") + "."
	}
	if len(came.Decided) > 0 {
		said = join(said, "This was decided already, so I changed nothing about it: "+
			strings.Join(came.Decided, "; ")+".")
	}
	return said
}
