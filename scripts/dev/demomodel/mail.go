package demomodel

import (
	"regexp"
	"slices"
	"strings"
)

// marker matches the words that introduce a part of a mail request.
var marker = regexp.MustCompile(`(?i)(?:^|[\s,;(])(?:` +
	`(?P<bcc>bcc)|(?P<cc>cc|(?:with\s+)?(?:a\s+)?copy(?:ing)?(?:\s+to)?)|(?P<to>to|for)|` +
	`(?P<body>saying|say|to\s+say|telling\s+(?:them|him|her|everyone)|(?:that|which)\s+(?:says|reads)|reading|that|(?:(?:with|and)\s+)?(?:the\s+|a\s+)?(?:text|body|message)\s*:|(?:with|and)\s+(?:the\s+)?(?:text|body|message|words)|and\s+(?:say|tell\s+(?:them|him|her|everyone)))|` +
	`(?P<subject>about|regarding|concerning|on\s+the\s+subject\s+of|(?:with\s+)?(?:the\s+)?(?:subject|title)(?:\s+line)?(?:\s+is)?|titled|re\s*:)` +
	`)(?:\s*:|\b|\s|$)\s*|(?P<colon>:)\s+`)

var (
	trailingCopy = regexp.MustCompile(`(?i)[\s,;.]+\(?(?:(?:and|please|with)\s+)*(bcc|cc)\s*:?\s+(<?` + addressLike +
		`>?(?:[\s,;&]+(?:and\s+)?<?` + addressLike + `>?)*)\)?[.\s]*$`)
	filler = regexp.MustCompile(
		`(?i)^\W*(?:(?:(?:(?:a|an|the|my|another|short|quick|brief|new)\s+)*(?:e-?mail|mail|message|note|letter)|it|him|her|them|out|off|over|know|please|and)\b\W*)+`)
	leading    = regexp.MustCompile(`(?i)^\W*(?:that|saying|say|to\s+say|with)\b\s*`)
	asking     = regexp.MustCompile(`(?i)^(ask|remind)\b`)
	toDo       = regexp.MustCompile(`(?i)^\s*to\s+`)
	wondering  = regexp.MustCompile(`(?i)^\s*(?:if|whether)\s+`)
	sentence   = regexp.MustCompile(`[.!?](?:\s|$)`)
	punctuated = regexp.MustCompile(`[.!?…:)\]]$`)
)

// understandMail parses a clause that begins with its verb.
func understandMail(t text) Intent {
	m := &Mail{}
	t = m.trailing(t)
	first := verb.FindStringIndex(t.mask)[1]
	if body, rest := m.parts(t, first); rest {
		m.write(m.request(t, body))
	}
	switch {
	case len(m.To) == 0 && len(m.Cc)+len(m.Bcc) > 0:
		m.To, m.Cc, m.Bcc = append(m.Cc, m.Bcc...), nil, nil
	case len(m.To) == 0:
		return Intent{Mail: m, Missing: MissingRecipient}
	}
	if m.Body == "" && m.Subject != "" {
		m.Body = "I am writing to you about " + strings.TrimRight(m.Subject, ".") + "."
		m.Subject = capitalise(m.Subject)
	}
	if m.Body == "" {
		return Intent{Mail: m, Missing: MissingText}
	}
	return Intent{Mail: m}
}

// trailing takes the copies off the end, where they may follow the mail's text.
func (m *Mail) trailing(t text) text {
	for {
		at := trailingCopy.FindStringSubmatchIndex(t.mask)
		if at == nil || at[0] == 0 {
			return t
		}
		list := &m.Cc
		if strings.EqualFold(t.mask[at[2]:at[3]], "bcc") {
			list = &m.Bcc
		}
		*list = append(t.slice(at[4], at[5]).addresses(), *list...)
		t = t.slice(0, at[0])
	}
}

// parts goes from marker to marker, and returns the mail's text: what follows a marker of it, or what is left over
// after the recipients.
func (m *Mail) parts(t text, at int) (body text, ok bool) {
	if run := addressRun.FindString(t.mask[at:]); run != "" {
		m.To = t.slice(at, at+len(run)).addresses()
		at += len(run)
	}
	var over text // text without a marker
	for {
		next := marker.FindStringSubmatchIndex(t.mask[at:])
		if next == nil {
			over = over.join(t.from(at))
			break
		}
		name, start, end := group(next), at+next[0], at+next[1]
		run := addressRun.FindString(t.mask[end:])
		known := len(m.To) > 0
		switch {
		case (name == "to" || name == "cc" || name == "bcc") && run != "":
			over = over.join(t.slice(at, start))
			m.add(name, t.slice(end, end+len(run)).addresses())
			end += len(run)
		case name == "body" || name == "colon" && known:
			over = over.join(t.slice(at, start))
			if !known {
				m.add("to", over.addresses())
			}
			return t.from(end), true
		case name == "subject" && m.Subject == "" && over.join(t.slice(at, start)).trimFiller().raw == "":
			end = m.takeSubject(t, end)
		default:
			over = over.join(t.slice(at, end))
		}
		at = end
	}
	over = over.trimFiller()
	return over, over.raw != ""
}

// takeSubject reads the subject up to the next marker that continues the request.
func (m *Mail) takeSubject(t text, at int) (end int) {
	if q, end, ok := t.quotationAt(at); ok {
		m.Subject = q
		return end
	}
	end = len(t.mask)
	for from := at; from < end; {
		next := marker.FindStringSubmatchIndex(t.mask[from:])
		if next == nil {
			break
		}
		name := group(next)
		if name == "body" || name == "colon" || name != "subject" && addressRun.MatchString(t.mask[from+next[1]:]) {
			end = from + next[0]
			break
		}
		from += next[1]
	}
	m.Subject = strings.TrimRight(t.slice(at, end).trim().raw, ".,; ")
	return end
}

// request turns "ask … to bring the slides" into a text for the recipient.
func (m *Mail) request(t, body text) text {
	v := asking.FindString(t.mask)
	switch {
	case v == "":
	case toDo.MatchString(body.mask):
		return read("Please " + body.raw[len(toDo.FindString(body.mask)):])
	case wondering.MatchString(body.mask):
		return read("I would like to know whether " + body.raw[len(wondering.FindString(body.mask)):])
	}
	return body
}

// write sets the body, and the subject where there is none yet.
func (m *Mail) write(t text) {
	t = t.trim()
	t = t.from(len(leading.FindString(t.mask))).trim()
	s := t.raw
	if q, ok := t.quoted(); ok && len(strings.Trim(t.mask, "\x01\"'“”„«»‘’ .")) == 0 {
		s = q
	} else if s != "" {
		s = capitalise(s)
		if !punctuated.MatchString(s) {
			s += "."
		}
	}
	m.Body = s
	if m.Subject == "" && s != "" {
		m.Subject = headline(s)
	}
	m.Subject = capitalise(m.Subject)
}

// headline returns the first sentence, cut between words.
func headline(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if end := sentence.FindStringIndex(s); end != nil {
		s = strings.TrimRight(s[:end[1]], ". ")
	}
	const most = 70
	if len(s) <= most {
		return s
	}
	cut := strings.LastIndexByte(s[:most], ' ')
	if cut < 0 {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s[:cut] + " …"
}

func (m *Mail) add(list string, addresses []string) {
	into := map[string]*[]string{"to": &m.To, "cc": &m.Cc, "bcc": &m.Bcc}[list]
	for _, a := range addresses {
		if !slices.Contains(*into, a) {
			*into = append(*into, a)
		}
	}
}

func (t text) trimFiller() text {
	t = t.trim()
	return t.from(len(filler.FindString(t.mask))).trim()
}

func (t text) join(u text) text {
	if t.raw == "" {
		return u
	}
	return text{t.raw + u.raw, t.mask + u.mask}
}

// group returns the name of marker's group that matched.
func group(m []int) string {
	for i, name := range marker.SubexpNames() {
		if name != "" && m[2*i] >= 0 {
			return name
		}
	}
	return ""
}
