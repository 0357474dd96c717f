package demomodel

import (
	"cmp"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

var (
	apart = lazyregexp.New(`(?i)\b(?:separately|individually|one\s+by\s+one|each\s+(?:on\s+their|` +
		`of\s+their)\s+own)\b`)
	saidThen = lazyregexp.New(`(?i)^[\s,]*(?:that|saying|about|to)\b`)

	// anotherReader matches a recipient without an address after recipients that have one.
	anotherReader = lazyregexp.New(`^(?i:and|plus|&)\s+(` + aName + `)\s+(?i:that|saying|about|to\s+say)\b`)
	manner        = lazyregexp.New(`(?i)^((?:in|as|with|by|via|from|using|without|before|after|every|` +
		`each)\s+\S+(?:\s+\S+){0,5}?|(?:right\s+)?now|right\s+away|at\s+once|asap|twice|\S+\s+times|again|\S+ly)` +
		`\s+(?:that|saying|about)\b`)
	// atOnce matches words of urgency in place of a text, and aside matches a remark about a recipient in parentheses.
	atOnce = lazyregexp.New(`(?i)^(?:right\s+now|now|right\s+away|immediately|at\s+once|asap|soon|today)[\s.!]*$`)
	aside  = lazyregexp.New(`^([^()]+)\)\s`)
	// otherMail matches a further recipient, with a text of their own, in the text of an e-mail.
	otherMail = lazyregexp.New(`(?i)\b((?:but|while|whereas|and)\s+(?:to\s+|tell\s+)?` + oneAddress +
		`\s+(?:that|about)\b.*)`)
	// corrected matches a correction of the words before it.
	corrected = lazyregexp.New(`(?i)[,;:.–—-]\s*((?:(?:oh|oops|sorry|no|wait|actually|um|uh|err?)[,.!\s]+)*` +
		`(?:no,?\s+wait|wait,?\s+no|i\s+mean|i\s+meant|scratch\s+that|or\s+rather|make\s+that|correction)\b[^.\n]*)`)
	// otherWord matches a phrase such as “not ten” after a word.
	otherWord    = lazyregexp.New(`(?i)^(not\s+[^\s,]+(?:\.\pL{2,}\b|,))`)
	beginsQuoted = lazyregexp.New(`^["'“„«‘` + "`" + `]\x01+["'”“»’` + "`" + `][\s,]*(?i:with|and|text|body|` +
		`subject)\b`)
	notThem   = lazyregexp.New(`(?i)\b` + excluded)
	notToThem = lazyregexp.New(`(?i)^(?:(?:and|but)\s+)?` + excluded)
	unsent    = lazyregexp.New(`(?i)\b(?:do\s+not|don['’]t|never)\s+send\b(?:\s+(?:it|this|that|yet|off|now|` +
		`anything|(?:the|this|that)\s+\S+))*[\s.!]*$`)
	attaching = lazyregexp.New(`(?i)(?:\band|[,;.])\s+(?:please\s+)?attach\s+\S|\bas\s+an?\s+attachment\b|` +
		`\bwith\s+(?:\S+\s+){0,3}attach(?:ed|ment)\b`)
	aFile = lazyregexp.New(`(?i)^(?:with\s+)?(?:the|my|this|that|our)\s+(?:\S+\s+)?(?:report|files?|documents?|slides|pdf|` +
		`photos?|` +
		`pictures?|presentation|spreadsheet|attachment)[\s.!]*$|` +
		`^[€$£]?\d[\d.,]*\s*(?:[€$£]|euros?|dollars?|pounds?|bucks)[\s.!]*$`)
)

// excluded matches people who must not, or perhaps must not, get the e-mail.
const excluded = `(?:not|never|without|except(?:\s+for)?|excluding|instead\s+of|or|nor|don['’]t\s+\w+)\s+` +
	`(?:with\s+|to\s+|for\s+|invit(?:e|ing)\s+|telling\s+|notifying\s+|informing\s+|including\s+|adding\s+|` +
	`asking\s+|copying\s+)?` + oneAddress

const sendsAtOnce = "I can send mail at once and not at a later time, so I did nothing. Please say it without the " +
	"time to have it sent as soon as you approve it."

const attachNothing = "I can write e-mails and attach nothing to them, so I did nothing. What should the mail say " +
	"instead?"

// doubtMail returns the question about an e-mail, if any.
func (a *ask) doubtMail(now time.Time) string {
	body := a.slots["body"]
	head := strings.TrimSuffix(a.text.mask, body.mask)
	starts := apart.FindStringIndex(body.mask)
	if apart.MatchString(a.slots["lead"].mask+" "+head) || starts != nil && starts[0] < 3 {
		return "I cannot tell one mail for all from one for each. Please ask for each of the mails, or leave “" +
			apart.FindString(a.slots["lead"].and(a.text).mask) + "” out."
	}
	if lead := findWhen(a.slots["lead"], now); lead.some() {
		return sendsAtOnce
	}
	if w := findWhen(body, now); w.some() && saidThen.MatchString(w.leftover.mask) && !saidThen.MatchString(body.mask) {
		return sendsAtOnce
	}
	return cmp.Or(a.doubtText(), a.beyondMail(), a.doubtLead())
}

// doubtText returns the question about words before or after the text that are not part of it.
func (a *ask) doubtText() string {
	body, tail := a.slots["body"].trim(), a.slots["tail"]
	if m := anotherReader.FindStringSubmatchIndex(body.mask); m != nil {
		return addressOf(body.raw[m[2]:m[3]])
	}
	if m := otherMail.FindStringSubmatchIndex(body.mask); m != nil {
		return unread(body.raw[m[2]:m[3]])
	}
	switch {
	case corrected.MatchString(a.text.mask):
		return unread(corrected.FindStringSubmatch(a.text.mask)[1])
	case atOnce.MatchString(body.mask):
		return unread(body.raw)
	case aside.MatchString(body.mask):
		return unread(aside.FindStringSubmatch(body.mask)[1])
	case otherWord.MatchString(body.mask):
		return unread(otherWord.FindString(body.mask))
	case beginsQuoted.MatchString(body.mask) && remains(body.unquoted()):
		return unread(body.unquoted())
	case remains(tail.mask):
		return unread(tail.raw)
	case unsent.MatchString(a.text.mask):
		return unread(unsent.FindString(a.text.mask))
	case notToThem.MatchString(body.mask):
		return unread(notToThem.FindString(body.mask))
	case manner.MatchString(body.mask):
		return unread(manner.FindStringSubmatch(body.mask)[1])
	case attaching.MatchString(body.mask), aFile.MatchString(body.mask):
		return attachNothing
	}
	return ""
}
