package demomodel

import (
	"strings"
	"time"
)

// An Intent is one request of a prompt: exactly one of Mail and Event is set.
type Intent struct {
	Mail    *Mail
	Event   *Event
	Missing Missing // what to ask the user for first; empty if the request is complete
}

// Mail holds the arguments of gmail_send.
type Mail struct {
	To      []string `json:"to"`
	Cc      []string `json:"cc,omitempty"`
	Bcc     []string `json:"bcc,omitempty"`
	Subject string   `json:"subject"`
	Body    string   `json:"body"`
}

// Event holds the arguments of calendar_event_create. Start and End are local times of TimeZone, or have an offset if
// the zone has no name, or are dates of an all-day event.
type Event struct {
	Summary   string   `json:"summary"`
	Start     string   `json:"start"`
	End       string   `json:"end"`
	TimeZone  string   `json:"timeZone,omitempty"`
	AllDay    bool     `json:"allDay,omitempty"`
	Attendees []string `json:"attendees,omitempty"`
}

// Missing names what a request lacks.
type Missing string

// What may be missing. A repetition is not understood, and a single event in its place would be wrong.
const (
	MissingRecipient Missing = "recipient"
	MissingText      Missing = "text"
	MissingTime      Missing = "time"
	OnceOnly         Missing = "once"
)

// Understand parses a prompt at the time now, whose location is the default time zone. It returns nil if it understands
// no request, or if the prompt is too long. It never fails: malformed values are left to the tools, which have better
// errors.
func Understand(prompt string, now time.Time) []Intent {
	if len(prompt) > maxPrompt {
		return nil
	}
	var intents []Intent
	var spoken text // the clauses so far, which an "it" may refer to
	var mail *Mail
	for _, c := range split(read(prompt).unasked()) {
		switch kind, at := c.kind(); kind {
		case mailClause:
			i := understandMail(c.from(at))
			mail = i.Mail
			intents = append(intents, i)
		case eventClause:
			intents = append(intents, understandEvent(c.from(at), spoken, mail, now))
		}
		spoken = c
	}
	return intents
}

func (i Intent) call() (tool string, args any) {
	if i.Mail != nil {
		return mailTool, i.Mail
	}
	return eventTool, i.Event
}

func (i Intent) ask() string {
	switch i.Missing {
	case MissingRecipient:
		return "Who should get the mail? Please give an e-mail address; I am the offline demo model and know no names."
	case MissingText:
		return "What should the mail to " + strings.Join(i.Mail.To, ", ") + " say?"
	case OnceOnly:
		return "I am the offline demo model and can make single events only. Please give one day and time."
	}
	return "When should “" + i.Event.Summary + "” be? Please give a day and a time, such as tomorrow at 10."
}

// complete takes an answer to what was missing.
func (i Intent) complete(answer string, now time.Time) (Intent, bool) {
	if len(answer) > maxPrompt {
		return i, false
	}
	t := read(answer)
	switch i.Missing {
	case MissingRecipient:
		m := *i.Mail
		m.To = t.addresses()
		i.Mail, i.Missing = &m, ""
		if m.Body == "" {
			i.Missing = MissingText
		}
		return i, len(m.To) > 0
	case MissingText:
		m := *i.Mail
		m.write(t)
		i.Mail, i.Missing = &m, ""
		return i, m.Body != ""
	case MissingTime:
		w := findWhen(t, now)
		e := *i.Event
		i.Event, i.Missing = &e, w.fill(&e, now)
		return i, i.Missing == ""
	}
	return i, false
}
