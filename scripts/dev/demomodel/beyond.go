package demomodel

import (
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// This file finds the parts of a request that the demo model understands but cannot fulfil: orders about how and when
// an e-mail is sent, texts that it would have to write, files, conditions, and other people's calendars.

// cannot returns the answer to a request that the demo model cannot fulfil. It quotes the user's words.
func cannot(words, reason string) string {
	words = excerpt(strings.Trim(words, " \t\n,;:.!?-–"), 80)
	return "I cannot do “" + words + "”: " + reason + " So I did nothing. Please leave it out"
}

const (
	plainMail = "I send one plain mail, at once, as soon as you approve it."
	orQuote   = ", or put the mail's text in quotation marks if these words belong to it."
)

var (
	// order matches the beginning of an order about the e-mail, after its text or instead of it.
	order = lazyregexp.New(`(?i)(?:^|[,.;!]\s*|\s(?:and|&|but|then|also|please)\s+)` +
		`(?:\(?\s*(?:and|but|then|also|please)\s+)*(` +
		`(?:(?:do\s+not|don['’]?t|never)\s+(?:ever\s+)?(?:send|mail|email|tell|cc|bcc|copy|forward|include|attach|` +
		`mention\s+(?:this|that|it)\s+to|share|deliver)|` +
		`(?:but\s+)?not\s+(?:before|until|till|after|on|today|tomorrow|now|yet|to)\b|` +
		`(?:attach|enclose|include)\s+(?:the|a|an|my|our|this|that|these|those|some|\S+\.\pL{2,4})|` +
		`(?:mark|flag|tag|label|format|encrypt|sign|translate|schedule|delay|archive)\s+(?:it|this|that|the\s+` +
		`(?:mail|email|e-mail|message))\b|` +
		`(?:make|keep)\s+(?:it|this|that|the\s+(?:mail|email|e-mail|message|text))\s+(?:sound|look|short|brief|long|` +
		`polite|friendly|formal|casual|funny|nice|warm|html|bold|urgent|private|confidential)|` +
		`(?:ask\s+for|request)\s+an?\s+(?:\S+\s+)?(?:receipt|confirmation|notification)|` +
		`(?:wait|hold\s+(?:it|on|off))\s+(?:until|till|for|with|before)\b|` +
		`send\s+(?:it|this|that)\s+(?:only|later|tomorrow|tonight|on|at|in|by|after|before|when|once|as|from|with|` +
		`to)\b|` +
		`(?:set|use|give\s+it)\s+(?:the\s+|a\s+)?(?:high|low|top|urgent|\S+\s+(?:font|template|signature))|` +
		`use\s+(?:the|my|our|a)\s+(?:\S+\s+)?(?:font|template|signature|letterhead|account|address)|` +
		`(?:but\s+)?only\s+(?:after|before|when|if|once)\b|` +
		`(?:cc|bcc|(?:blind[\s-])?copy)\s+\S+|` +
		`(?:cancel|move|reschedule|clear|delete)\s+(?:all\s+)?(?:my|our)\s+(?:\S+\s+)?(?:meetings?|calls?|appointments?|events?|` +
		`day|calendar|lunch|dinner)\b|` +
		`(?:then|also)\s+(?:delete|cancel|remove|move|archive|book|buy|order|call|schedule|create|add|put|print)\s+\S|` +
		`(?:ask|tell|remind|thank|invite)\s+(?:her|him|them)\s+(?:for|to|about|that|whether|if)\b|` +
		`signed\s+(?:by\s+|as\s+)?\S+(?:\s+\S+)?[\s.!]*$|` +
		`no\s+(?:attachments?|copies|signature|reply)\b|` +
		`(?:save|store|keep|leave)\s+(?:it|this|that)\s+(?:as|in)\s+(?:an?\s+|my\s+|the\s+)?drafts?\b|` +
		`show\s+(?:it|this|that)\s+to\s+me\b|show\s+me\b|read\s+(?:it|this|that)\s+to\s+me\b|` +
		`(?:delete|print|save|file)\s+(?:it|this|that)\b|(?:delete|archive|label|star)\s+(?:the|this|that)\s+` +
		`(?:thread|conversation|mail|email|message)\b|put\s+(?:it|this|that)\s+(?:on|in|into)\s+(?:my|the|our)\b|` +
		`be\s+(?:very\s+)?(?:polite|brief|short|nice|kind|friendly|formal|concise|gentle|clear|honest)\b|` +
		`(?:friendlier|politer|nicer|shorter|longer|more\s+(?:polite|formal|friendly|casual|urgent))[\s.!]*$|` +
		`follow\s+up\b|remind\s+me\b)(?:[^.\n]|\.\S)*)`)
	// notSent matches words that forbid sending the e-mail at once, anywhere in the text.
	notSent = lazyregexp.New(`(?i)\s((?:do\s+not|don['’]?t|never)\s+send\s+(?:it|this|that|the\s+\S+)\s+` +
		`(?:before|until|till|yet|today|now|on|unless|if)\b(?:[^.\n]|\.\S)*)`)
	// fashion matches words at the end of a text about the form or the priority of the e-mail.
	fashion = lazyregexp.New(`(?i)[\s,(]((?:in|with|as|via|from|using)\s+(?:an?\s+|the\s+|my\s+|our\s+)?` +
		`(?:\S+\s+)?(?:bold|italics?|html|markdown|plain\s+text|caps|capitals|pdf|colou?rs?|priority|importance|` +
		`read\s+receipt|signature|letterhead|(?:work|private)\s+(?:account|address)|emojis?|smileys?|tone|style|` +
		`tables?|bullet\s+points?|bullets|(?:numbered\s+|bulleted\s+)list|fonts?|sans|arial|helvetica|courier|` +
		`outlook|slack|sms|whatsapp|teams|telegram|signal|` +
		`german|french|spanish|italian|english|dutch|polish|russian|chinese|japanese))[\s.!)]*$`)
	// secretly matches a request of one word at the end.
	secretly = lazyregexp.New(`(?i)[\s,](anonymously|encrypted|confidentially|secretly)[\s.!]*$`)
	// untilThen matches a condition in place of a text.
	untilThen = lazyregexp.New(`(?i)^(?:when|once|after|before|as\s+soon\s+as|until|unless|if)\s+\S+\s+\S`)
	// notYet matches a condition that somebody must fulfil first.
	notYet = lazyregexp.New(`(?i)(?:^|[\s,])((?:when|once|after|as\s+soon\s+as|until|unless)\s+(?:\S+\s+){1,4}?` +
		`(?:has|have)\s+(?:\S+ed|given|written|sent|seen|read|come|gone|done|said|left|paid|told|met|found|heard|` +
		`made|been)\b(?:[^.\n]|\.\S)*)`)
	// behindText matches a condition or a frequency after a text.
	behindText = lazyregexp.New(`(?i)^(.*\S)[\s,]+((?:when|once|after|as\s+soon\s+as|until)\s+` +
		`(?:\S+\s+){1,4}?(?:is|are)\s+\S.*|` +
		`(?:twice|thrice|(?:[2-9]|[1-9][0-9]|two|three|four|five|six|ten|several|many)\s+(?:more\s+)?times)[\s.!]*)$`)
	// wordy matches the words of a sentence. An end that matches is a part of the sentence.
	wordy = lazyregexp.New(`(?i)\b(?:i|we|you|he|she|it|they|who|to|please|\pL+ed|\pL+ing)\b|(?:\S+\s+){3}\S`)
	// kindOfMail matches a kind of e-mail that is not plain: “an html mail”.
	kindOfMail = lazyregexp.New(`(?i)\b((?:an?|the|my)\s+(?:\S+\s+){0,2}?(?:html|rich|formatted|encrypted|signed|` +
		`bold|italic|colou?rful|fancy|beautiful|long|longer|detailed|formal|informal|polite|funny|illustrated|hidden|` +
		`secure|anonymous|recurring|scheduled|delayed|automatic|confidential|priority|urgent|voice|sms|text|whatsapp|` +
		`friendly|gentle|warm|cheerful|stern|heartfelt|witty|personal|apologetic|angry|casual|professional|` +
		`slack|registered|certified)\s+(?:e-?mail|mail|message|note|letter)s?)\b`)
	// described matches the description of a text in place of the text: “a long apology”.
	described = lazyregexp.New(`(?i)^(?:(?:an?|the|my|our|some|this|these|those|all|your)\s+\S|` +
		`what\s+(?:i|we|you|he|she|they)\s|` +
		`(?:some|any)thing\b)`)
	aVerb = lazyregexp.New(`(?i)\b(?:is|are|was|were|am|be|been|has|have|had|will|` +
		`would|can|cannot|could|may|might|must|should|shall|do|does|did|\pL+n['’]t|` +
		`\pL+['’](?:s|re|ve|ll|m|d)\s+(?:\pL+ing|not|\pL+ed|at|on|in|here|there|ready|late|off|done)|` +
		`works?|worked|fails?|failed|starts?|started|begins?|began|ends?|ended|comes?|came|goes|went|needs?|needed|` +
		`wants?|wanted|closes?|closed|opens?|opened|arrives?|arrived|leaves?|left|moves?|moved|looks?|looked|takes?|` +
		`took|gets?|got|says?|said|runs?|ran|breaks?|broke|happens?|happened|changes|changed|passes|passed|costs?)\b`)
	introduced = lazyregexp.New(`(?i)(?:\b(?:that|saying|says?|reads?|reading|text|body|words|following|know|` +
		`telling|about|regarding|concerning|to\s+say)|:)[\s,:\x01"“”'‘’]*$`)
	copyTo   = lazyregexp.New(`(?i)^b?cc\s+([^,.]+)|^copy\s+([^,.]+)`)
	fileName = lazyregexp.New(`(?i)^(?:(?:the|my|our|an?|this|that)\s+)?(?:\S+\s+)?\S+\.` +
		`(?:pdf|docx?|xlsx?|pptx?|csv|txt|zip|png|jpe?g|gif|odt|ods|md|` +
		`html?|json|xml|mp[34]|key|pages|ics)(?:[\s.!?,]|$)`)

	eventCondition = lazyregexp.New(`(?i)[\s,(]((?:(?:but\s+)?only\s+)?(?:if|unless|when|whenever|once|` +
		`provided|in\s+case|as\s+(?:long|soon)\s+as|depending\s+on|until|` +
		`after\s+(?:\S+\s+){1,3}?(?:has|have))\s+\S.*)$`)
	// eventFashion matches words at the end about the look of an event.
	eventFashion = lazyregexp.New(`(?i)[\s,(]((?:(?:marked\s+|shown\s+|set\s+)?as|in)\s+(?:an?\s+)?(?:private|public|` +
		`confidential|tentative|provisional|busy|free|optional|important|urgent|red|blue|green|yellow|orange|purple|` +
		`pink|gr[ae]y|black|white))[\s.!)]*$`)
	reserved = lazyregexp.New(`(?i)[\s,.;(]((?:but|optional(?:ly)?\)?)\s+\S.*|` +
		`(?:location|place|where|description|notes?|details|agenda|colou?r|status|reminder|url|link|guests|attendees)` +
		`:\s*\S.*)$`)
	aCalendar = lazyregexp.New(`(?i)\b(?:in|into|on|to|onto)\s+((?:\S+\s+){1,3}?)(?:calendar|diary|agenda)s?\b`)
	// otherCall matches a video call that is not one of Google Meet.
	otherCall = lazyregexp.New(`(?i)\b((?:on|via|over|by|using|in|through)\s+(?:zoom|(?:microsoft\s+|ms\s+)?teams|` +
		`skype|webex|slack|face\s?time|whatsapp|discord|signal|jitsi)|` +
		`(?:zoom|teams|webex|skype|jitsi)\s+(?:link|call|meeting)|https?://\S+)`)
	preposition = lazyregexp.New(`(?i)^.*\b(?:in|into|on|to|onto|at|with|for)\s+`)
)

// beyondMail returns the answer about a part of a request for an e-mail that cannot be fulfilled.
func (a *ask) beyondMail() string {
	body := a.slots["body"].trim()
	head := a.text.mask
	if at := strings.Index(a.text.mask, body.mask); body.mask != "" && at >= 0 {
		head = a.text.mask[:at]
	}
	if answer := beyondKind(a.slots["lead"], head, body); answer != "" {
		return answer
	}
	for _, said := range []text{body, a.slots["subject"].trim()} {
		if answer := beyondText(said); answer != "" {
			return answer
		}
	}
	return a.beyondSending(head, body)
}

// beyondKind returns the answer about a kind of e-mail that is not plain text.
func beyondKind(lead text, head string, body text) string {
	if words := kindOfMail.FindString(lead.mask + head); words != "" && lead.raw != "" {
		return cannot(words, plainMail) + "."
	}
	if m := kindOfMail.FindStringIndex(body.mask); m != nil && m[0] == 0 {
		return cannot(body.mask[:m[1]], plainMail) + "."
	}
	return ""
}

// beyondSending returns the answer about a condition, a later time or an attachment of an e-mail.
func (a *ask) beyondSending(head string, body text) string {
	question := strings.Contains(strings.ToLower(head), "ask ") // “ask … when she has time” is a question
	if untilThen.MatchString(body.mask) && !question && a.since.body == "" && !introduced.MatchString(head) {
		return cannot(body.raw, waitsForNothing) + orQuote
	}
	if m := notYet.FindStringSubmatchIndex(body.mask); m != nil && (m[2] > 0 || !question) {
		return cannot(body.raw[m[2]:m[3]], waitsForNothing) + orQuote
	}
	if m := behindText.FindStringSubmatchIndex(body.mask); m != nil && !question && !introduced.MatchString(head) &&
		!aVerb.MatchString(body.mask[:m[3]]) && !wordy.MatchString(body.mask[:m[3]]) {
		return cannot(body.raw[m[4]:m[5]], plainMail) + orQuote
	}
	return ""
}

// beyondText returns the answer about an order in the text or the subject of an e-mail that cannot be fulfilled.
func beyondText(said text) string {
	for _, form := range []*lazyregexp.Regexp{order, notSent, fashion, secretly} {
		m := form.FindStringSubmatchIndex(said.mask)
		if m == nil {
			continue
		}
		words := said.raw[m[2]:m[3]]
		if who := copyTo.FindStringSubmatch(words); who != nil && len(read(words).addresses()) == 0 {
			return addressOf(who[1] + who[2])
		}
		return cannot(words, plainMail) + orQuote
	}
	return ""
}

const waitsForNothing = "I send an e-mail as soon as you approve it, and wait for nothing."

// unwritten returns the description of the e-mail's text if the request has no text: “a long apology”. It returns "" if
// the request has the text.
func (a *ask) unwritten() string {
	body := a.slots["body"].trim()
	at := strings.Index(a.text.mask, body.mask)
	if body.raw == "" || a.since.body != "" || at < 0 || introduced.MatchString(a.text.mask[:at]) {
		return ""
	}
	if fileName.MatchString(body.mask) || described.MatchString(body.mask) && !aVerb.MatchString(body.mask) {
		return body.raw
	}
	return ""
}

// beyondEvent returns the answer about a part of a request for an event that cannot be fulfilled.
func beyondEvent(left text) string {
	end := len(left.mask)
	if m := topical.FindStringIndex(left.mask); m != nil {
		end = m[0]
	}
	left = left.slice(0, end)
	if m := aCalendar.FindStringSubmatch(left.mask); m != nil {
		whose := strings.ToLower(oneSpace(preposition.ReplaceAllString(m[1], "")))
		if whose != "my" && whose != "the" && whose != "my own" {
			return cannot(oneSpace(m[0]), "I can put events into your own calendar alone.") + "."
		}
	}
	if m := otherCall.FindStringSubmatch(left.mask); m != nil {
		return cannot(oneSpace(m[1]), "the only link that I can add is one of Google Meet.") + "."
	}
	if m := eventFashion.FindStringSubmatch(left.mask); m != nil {
		return cannot(oneSpace(m[1]), "I put a plain event into your calendar.") + "."
	}
	if m := reserved.FindStringSubmatch(left.mask); m != nil {
		return unread(oneSpace(m[1]))
	}
	if m := eventCondition.FindStringSubmatch(left.mask); m != nil {
		return cannot(oneSpace(m[1]), "I put an event into your calendar as soon as you approve it.") + "."
	}
	return ""
}
