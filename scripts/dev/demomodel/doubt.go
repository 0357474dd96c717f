package demomodel

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// A wish is carried out as it was said or not at all: this file finds what a request says and no rule reads, and has
// the question about it.

var (
	// someZone matches what names a time zone in a way that is not one name for one zone.
	someZone = regexp.MustCompile(`\b(?:[ECMP][SD]?T|CES?T|BST|IST|JST|AE[SD]T)\b|` +
		`\b\p{Lu}\pL+(?:\s\p{Lu}\pL+)?\s+[Tt]ime\b|\b(?:UTC|GMT)\s*[+-]\s*\d{1,2}(?::\d{2})?|` +
		`\s{3,}\p{Lu}\pL+/\p{Lu}[\pL_]+\s*$`)
	offset = regexp.MustCompile(`(?:^|\s)[+-]\s*\d{1,2}\b`)
	vague  = regexp.MustCompile(`(?i)\b(?:yesterday|\S+\s+\S+\s+ago\b|last\s+(?:week|month|year|` + weekdays + `)\b|` +
		`next\s+(?:week|month|year|quarter)|weekend|(?:in|after)\s+\S+\s+(?:months?|years?)|some\s*time|later|asap|` +
		`soon|separately|individually|one\s+by\s+one|except|unless|biweekly)\b`)
	apart     = regexp.MustCompile(`(?i)\b(?:separately|individually|one\s+by\s+one|each\s+(?:on\s+their|of\s+their)\s+own)\b`)
	condition = regexp.MustCompile(`(?i)^\W*(?:if|unless|when|once|after|before|until|as\s+soon\s+as|while|whenever|` +
		`every|each)\b`)
	laterMail = regexp.MustCompile(`(?i)^\W*(?:schedule|plan)\s+(?:an?\s+|the\s+)?(?:e-?mail|mail|message)\b`)
	saidThen  = regexp.MustCompile(`(?i)^[\s,]*(?:that|saying|about|to say)\b`)
	filler    = regexp.MustCompile(`(?i)\b(?:please|kindly|thanks|thank|you|hi|hello|hey|ok|okay|yes|now|just|also|` +
		`then|and|so|well|good|morning|afternoon|evening|there|dear|i|want|need|would|like|i'd|to|let's|lets|us|` +
		`can|could|will|but|would|the|a|an|it|at|for|on|in|of|with|by|my|me|from|new|is)\b`)
	aWord = regexp.MustCompile(`[\pL\pN]{2,}`)
)

// unread returns the question about words that were not understood.
func unread(words string) string {
	return "I did not understand “" + excerpt(strings.Trim(words, " \t\n,;:.!?-–"), 80) + "”, so I did nothing. " +
		"Please say it in other words, or leave it out."
}

// remains reports whether a text says something beyond courtesies and small words.
func remains(mask string) bool { return aWord.MatchString(filler.ReplaceAllString(mask, " ")) }

// doubt returns what to ask about the times: of a day or an hour that does not exist, a zone that is not known, and of
// more times than an event has.
func (w when) doubt() string {
	for _, d := range w.days {
		if time.Date(d.year, d.month, d.day, 0, 0, 0, 0, time.UTC).Day() != d.day || d.month < 1 || d.month > 12 {
			return fmt.Sprintf("There is no day %s in the calendar. Which day do you mean?", d)
		}
	}
	for _, c := range []*clock{w.start, w.end} {
		if c != nil && !c.exists() {
			return fmt.Sprintf("There is no time %d:%02d%s on a clock. Which time do you mean?", c.hour, c.minute,
				c.said)
		}
	}
	if _, err := time.LoadLocation(w.zone); err != nil {
		return "I know no time zone “" + w.zone + "”. Please give its name, such as Europe/Berlin."
	}
	left := w.leftover.mask
	if fromUTC := w.zone == "UTC" && offset.MatchString(left); fromUTC {
		return "I know no offsets from UTC. Please give the time zone's name, such as Europe/Berlin."
	}
	switch zone := someZone.FindString(left); {
	case zone != "" && w.timed():
		return "Which time zone is “" + strings.TrimSpace(zone) + "”? Please give its name, such as Europe/Berlin."
	case w.start != nil && (atClock.MatchString(left) || anyClock.MatchString(left)), len(w.days) > 2,
		len(w.days) == 2 && w.end == nil && !w.allDay:
		return "I read more than one time. Please give one day and one time."
	}
	return ""
}

// exists reports whether a day has that time: 24:00 is one where a day ends.
func (c clock) exists() bool {
	return c.minute < 60 && (c.hour < 24 || c.hour == 24 && c.minute == 0) && !c.overHalf
}

// doubt returns what to ask about an event of which the times are known.
func (a *ask) doubtEvent(w when) string {
	left := w.leftover
	if m := called.FindStringIndex(left.mask); m != nil {
		left = left.slice(0, m[0])
	}
	switch words := vague.FindString(left.mask); {
	case laterMail.MatchString(a.text.mask):
		return sendsAtOnce
	case words != "":
		return unread(words)
	}
	if _, quoted := a.text.quoted(); !quoted {
		return a.doubtLead()
	}
	for _, re := range []*regexp.Regexp{inviting, withThem, inMine, startVerb, someNoun} {
		for _, m := range re.FindAllStringIndex(left.mask, -1) {
			left = left.blank(m[0], m[1])
		}
	}
	rest := strings.NewReplacer(string(rune(hidden)), "", `"`, "", "'", "", "“", "", "”", "", "called", "").Replace(
		left.mask)
	if remains(rest) {
		return unread(articles.ReplaceAllString(oneSpace(rest)+" ", ""))
	}
	return a.doubtLead()
}

var someNoun = regexp.MustCompile(`(?i)\b(?:` + nouns + `|entry|slot|time|title|titled|long|starting)\b`)

const sendsAtOnce = "I can send mail at once and not at a later time, so I did nothing. Please say it without the " +
	"time to have it sent as soon as you approve it."

// doubtMail returns what to ask about a mail.
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
	if w := findWhen(body, now); w.some() && saidThen.MatchString(strings.TrimSpace(w.leftover.mask)) &&
		!strings.HasPrefix(strings.TrimSpace(body.mask), strings.TrimSpace(w.leftover.mask)[:4]) {
		return sendsAtOnce
	}
	return a.doubtLead()
}

// doubtLead returns what to ask about the words before a request: a condition is none that could be left out.
func (a *ask) doubtLead() string {
	if lead := a.slots["lead"]; condition.MatchString(lead.mask) {
		return unread(lead.raw)
	}
	return ""
}

// some reports whether there is any time.
func (w when) some() bool { return w.start != nil || len(w.days) > 0 || w.in > 0 }

var (
	otherScript = regexp.MustCompile(`[\p{Cyrillic}\p{Greek}\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Arabic}` +
		`\p{Hebrew}\p{Devanagari}\p{Thai}]`)
	latin      = regexp.MustCompile(`\p{Latin}`)
	otherWords = regexp.MustCompile(`(?i)^(?:ich|bitte|und|der|die|das|dass|ein|eine|einen|mir|mit|morgen|heute|um|uhr|` +
		`schick|schicke|sende|schreib|schreibe|termin|trage|lade|mein|meine|ist|was|wer|nicht|zum|von|` +
		`je|moi|le|la|les|une|un|des|avec|pour|demain|envoie|envoyez|écris|écrire|que|réunion|à|est|et|quoi|` +
		`el|los|las|una|con|mañana|por|favor|envía|manda|reunión|correo|qué|y|para|crea|` +
		`il|lo|domani|invia|alle|riunione|di|che|per|o|uma|amanhã|reunião|às|envie|` +
		`een|het|stuur|morgenochtend|vergadering|naar|met|en|op|alstublieft)$`)
	englishWords = regexp.MustCompile(`(?i)^(?:the|to|at|tomorrow|today|with|that|saying|send|email|mail|schedule|put|` +
		`book|my|calendar|in|on|and|please|is|are|what|how|you|meeting|lunch|for|of|it|tell|write|call|from|event|about)$`)
	behindSaying = regexp.MustCompile(`(?i)\b(?:that|saying|says?|titled|called|about|subject)\b|:\s`)
)

const englishOnly = "I am Countersign's offline demo model and understand English only, so I did nothing."

// foreign reports whether a request is in another language than English. What is to be written may be in any.
func foreign(t text) bool {
	head := t.mask
	if at := behindSaying.FindStringIndex(head); at != nil {
		head = head[:at[0]]
	}
	if others := len(otherScript.FindAllString(head, -1)); others > 0 {
		return others > len(latin.FindAllString(anAddress.ReplaceAllString(head, ""), -1))
	}
	others, english := 0, 0
	for _, word := range strings.Fields(anAddress.ReplaceAllString(head, "")) {
		word = strings.Trim(word, ",.;:!?¿¡()\x01\"'“”")
		switch {
		case englishWords.MatchString(word):
			english++
		case otherWords.MatchString(word):
			others++
		}
	}
	return others >= 2 && others > english
}
