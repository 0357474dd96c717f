package demomodel

import (
	"strings"
	"time"
)

// Intent is one thing that a prompt asks for: exactly one of Mail and Event is set.
type Intent struct {
	Mail    *Mail
	Event   *Event
	Missing Missing // what has to be asked for first; empty when the request is complete
}

// Mail is the arguments of gmail_send.
type Mail struct {
	To      []string `json:"to"`
	Cc      []string `json:"cc,omitempty"`
	Bcc     []string `json:"bcc,omitempty"`
	Subject string   `json:"subject"`
	Body    string   `json:"body"`
}

// Event is the arguments of calendar_event_create. Start and End are clocks of TimeZone, or have their offset where the
// zone has no name, or are dates of an all-day event.
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

// Understand reads a prompt at a moment, whose location is the time zone where the prompt names none. It gives nothing
// where it understands no request, or the prompt is longer than it reads. It never fails: what is malformed is left to
// the tools, which say so better.
func Understand(prompt string, now time.Time) []Intent {
	if len(prompt) > maxPrompt {
		return nil
	}
	var intents []Intent
	var spoken text // the clauses so far, for an "it" that was said before
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
