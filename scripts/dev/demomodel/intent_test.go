package demomodel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/countersign-run/countersign/scripts/dev/demomodel"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// now is a Wednesday.
var now = time.Date(2026, 11, 18, 9, 30, 0, 0, time.UTC)

// mail and event are the arguments of the two tools.
type (
	mail struct {
		To      []string `json:"to"`
		Cc      []string `json:"cc,omitempty"`
		Bcc     []string `json:"bcc,omitempty"`
		Subject string   `json:"subject"`
		Body    string   `json:"body"`
	}
	event struct {
		Summary   string   `json:"summary"`
		Start     string   `json:"start"`
		End       string   `json:"end"`
		TimeZone  string   `json:"timeZone,omitempty"`
		AllDay    bool     `json:"allDay,omitempty"`
		Attendees []string `json:"attendees,omitempty"`
	}
)

// asked returns the answer to a prompt if mail and calendar are offered.
func asked(prompt string, now time.Time) fakegemini.Turn {
	return demomodel.Model(func() time.Time { return now })(fakegemini.Request{
		Contents: []fakegemini.Content{{Role: "user", Parts: []fakegemini.Part{{Text: &prompt}}}},
		Tools:    []fakegemini.Declaration{{Name: "gmail_send"}, {Name: "calendar_event_create"}},
	})
}

// The beginnings of the questions.
const (
	missingRecipient = "Who should get the mail?"
	missingText      = "What should the mail to "
	missingTime      = "When should “"
	onceOnly         = "I am the offline demo model and can make single events only."
)

func to(addresses ...string) []string { return addresses }

func mailTo(a, subject, body string) *mail { return &mail{To: to(a), Subject: subject, Body: body} }

func at(summary, start, end string, attendees ...string) *event {
	return &event{Summary: summary, Start: start, End: end, TimeZone: "UTC", Attendees: attendees}
}

func TestMail(t *testing.T) {
	const ana = "ana@example.com"
	for prompt, want := range map[string]*mail{
		"email ana@example.com that the demo is at ten": mailTo(ana, "The demo is at ten",
			"The demo is at ten."),
		"Email ana@example.com that the demo is at ten.": mailTo(ana, "The demo is at ten",
			"The demo is at ten."),
		"please e-mail ana@example.com: the demo is at ten": mailTo(ana, "The demo is at ten",
			"The demo is at ten."),
		"Could you please email ana@example.com saying that the demo is at ten?": mailTo(ana, "The demo is at ten",
			"The demo is at ten."),
		"tell ana@example.com the demo is at ten": mailTo(ana, "The demo is at ten",
			"The demo is at ten."),
		"let ana@example.com know that lunch is cancelled": mailTo(ana, "Lunch is cancelled",
			"Lunch is cancelled."),
		"inform <ana@example.com> that bob@x.com will come": mailTo(ana, "bob@x.com will come",
			"bob@x.com will come."),
		"remind ana@example.com to bring the slides": mailTo(ana,
			"Please bring the slides", "Please bring the slides."),
		"ask ana@example.com whether lunch is fine": mailTo(ana,
			"I would like to know whether lunch is fine", "I would like to know whether lunch is fine."),
		"write to ana@example.com about the budget": mailTo(ana, "The budget",
			"I am writing to you about the budget."),
		"send ana@example.com a mail about the trip to Rome saying see you there!": mailTo(ana, "The trip to Rome",
			"See you there!"),
		"send a mail about lunch to ana@example.com saying 12:30 at Luigi's": mailTo(ana, "Lunch",
			"12:30 at Luigi's."),
		"send a message to ana@example.com with subject 'Hello, you' and say hi": mailTo(ana, "Hello, you", "Hi."),
		`send ana@example.com "see you at 8"`: mailTo(ana, "See you at 8",
			"see you at 8"),
		`Send an email to ana@example.com with the subject "Q3" and the text "Done"`: mailTo(ana, "Q3", "Done"),
		"write an email to ana@example.com with subject Demo and body it is at ten": mailTo(ana, "Demo",
			"It is at ten."),
		"send hello to ana@example.com": mailTo(ana, "Hello", "Hello."),
		"I want you to mail ana@example.com that we are late": mailTo(ana, "We are late",
			"We are late."),
		"email ana@example.com hello there": mailTo(ana, "Hello there",
			"Hello there."),
		"send an e-mail to ana@example.com subject: Hi body: How are you?": mailTo(ana, "Hi", "How are you?"),
		"email ana@example that the demo is at ten": mailTo("ana@example",
			"The demo is at ten", "The demo is at ten."),
		"email ana@example.com that we should talk and send the file": mailTo(ana,
			"We should talk and send the file", "We should talk and send the file."),
		"email ana@example.com saying please review and add comments": mailTo(ana,
			"Please review and add comments", "Please review and add comments."),
		"email ana@example.com that I don't mind": mailTo(ana, "I don't mind",
			"I don't mind."),
		"Hi! Please email ana@example.com that it rains": mailTo(ana, "It rains",
			"It rains."),
		"email ana@example.com that tomorrow's meeting is at 10": mailTo(ana,
			"Tomorrow's meeting is at 10", "Tomorrow's meeting is at 10."),
		"send bob@x.com and eve@y.org a mail about lunch saying we meet at noon": {
			To: to("bob@x.com", "eve@y.org"), Subject: "Lunch", Body: "We meet at noon."},
		"write to bob@x.com cc eve@y.org that it works": {
			To: to("bob@x.com"), Cc: to("eve@y.org"), Subject: "It works", Body: "It works."},
		"email bob@x.com, ana@example.com and dan@z.net, cc eve@y.org, bcc kim@q.io saying all is done": {
			To: to("bob@x.com", "ana@example.com", "dan@z.net"), Cc: to("eve@y.org"), Bcc: to("kim@q.io"),
			Subject: "All is done", Body: "All is done."},
		"email bob@x.com that it works, cc eve@y.org and dan@z.net": {
			To: to("bob@x.com"), Cc: to("eve@y.org", "dan@z.net"), Subject: "It works", Body: "It works."},
		"email bob@x.com that it works (bcc eve@y.org).": {
			To: to("bob@x.com"), Bcc: to("eve@y.org"), Subject: "It works", Body: "It works."},
	} {
		t.Run(prompt, func(t *testing.T) { check(t, prompt, want) })
	}
}

func TestEvents(t *testing.T) {
	const ana = "ana@example.com"
	berlin := func(e *event) *event { e.TimeZone = "Europe/Berlin"; return e }
	for prompt, want := range map[string]*event{
		"schedule a meeting 'standup' tomorrow at 10 for 30 minutes with ana@example.com": at("standup",
			"2026-11-19T10:00:00", "2026-11-19T10:30:00", ana),
		"create an event called Retro on Friday from 3 to 4pm": at("Retro",
			"2026-11-20T15:00:00", "2026-11-20T16:00:00"),
		"put lunch with ana@example.com in my calendar tomorrow at noon": at("Lunch",
			"2026-11-19T12:00:00", "2026-11-19T13:00:00", ana),
		"lunch on 2027-03-04 from 12:00 to 13:00 Europe/Berlin": berlin(
			at("Lunch", "2027-03-04T12:00:00", "2027-03-04T13:00:00")),
		"Lunch on 4 March 2027 12:00-13:00 (Europe/Berlin)": berlin(
			at("Lunch", "2027-03-04T12:00:00", "2027-03-04T13:00:00")),
		"schedule lunch on March 4th at half past twelve": at("Lunch",
			"2027-03-04T12:30:00", "2027-03-04T13:30:00"),
		"book a 45 minute call with bob@x.com and eve@y.org next Monday at 9:15": at("Call",
			"2026-11-23T09:15:00", "2026-11-23T10:00:00", "bob@x.com", "eve@y.org"),
		"set up a meeting about the budget today at 3": at(
			"Meeting about the budget", "2026-11-18T15:00:00", "2026-11-18T16:00:00"),
		"invite ana@example.com to dinner tomorrow at 8 in the evening": at("Dinner",
			"2026-11-19T20:00:00", "2026-11-19T21:00:00", ana),
		"add dentist to my calendar the day after tomorrow at 8am for half an hour": at("Dentist",
			"2026-11-20T08:00:00", "2026-11-20T08:30:00"),
		"create a meeting tomorrow 10-11": at("Meeting",
			"2026-11-19T10:00:00", "2026-11-19T11:00:00"),
		"block tomorrow from 9 to 11 for writing": at("Writing",
			"2026-11-19T09:00:00", "2026-11-19T11:00:00"),
		"make a calendar entry for the demo tomorrow at ten": at("Demo",
			"2026-11-19T10:00:00", "2026-11-19T11:00:00"),
		"plan a workshop on 04.03.2027 from 10 to 4": at("Workshop",
			"2027-03-04T10:00:00", "2027-03-04T16:00:00"),
		"make an appointment at 11": at("Appointment",
			"2026-11-18T11:00:00", "2026-11-18T12:00:00"),
		"make an appointment at 8": at("Appointment",
			"2026-11-19T08:00:00", "2026-11-19T09:00:00"),
		"please schedule a call in 2 hours for 1.5 hours": at("Call",
			"2026-11-18T11:30:00", "2026-11-18T13:00:00"),
		"meeting 2027-03-04T12:00 to 2027-03-04T13:30": at("Meeting",
			"2027-03-04T12:00:00", "2027-03-04T13:30:00"),
		"party on Friday from 10pm until 2am": at("Party",
			"2026-11-20T22:00:00", "2026-11-21T02:00:00"),
		"put holiday in my calendar on 2027-03-04 all day": {Summary: "Holiday",
			Start: "2027-03-04", End: "2027-03-05", AllDay: true},
		"I'd like to schedule a meeting with ana@example.com in one week at quarter to four": at("Meeting",
			"2026-11-25T15:45:00", "2026-11-25T16:45:00", ana),
	} {
		t.Run(prompt, func(t *testing.T) { check(t, prompt, want) })
	}
}

func TestSeveralRequestsInOnePrompt(t *testing.T) {
	const ana = "ana@example.com"
	demo := mailTo(ana, "The demo is at ten", "The demo is at ten.")
	for prompt, want := range map[string][]any{
		"email ana@example.com that the demo is at ten and put it in my calendar tomorrow at ten": {
			demo, at("The demo is at ten", "2026-11-19T10:00:00", "2026-11-19T11:00:00")},
		"Email ana@example.com that the demo is at ten. Then schedule a demo tomorrow at ten with ana@example.com.": {
			demo, at("Demo", "2026-11-19T10:00:00", "2026-11-19T11:00:00", ana)},
		"schedule a demo tomorrow at ten and email ana@example.com that the demo is at ten": {
			at("Demo", "2026-11-19T10:00:00", "2026-11-19T11:00:00"), demo},
		"email ana@example.com that the demo is tomorrow at ten and add it to my calendar": {
			mailTo(ana, "The demo is tomorrow at ten", "The demo is tomorrow at ten."),
			at("The demo is tomorrow at ten", "2026-11-19T10:00:00", "2026-11-19T11:00:00")},
		"email ana@example.com that lunch is on me, and schedule lunch tomorrow from 12 to 1 with her": {
			mailTo(ana, "Lunch is on me", "Lunch is on me."),
			at("Lunch", "2026-11-19T12:00:00", "2026-11-19T13:00:00", ana)},
		"tell ana@example.com that I am late and tell bob@x.com that he is early": {
			mailTo(ana, "I am late", "I am late."), mailTo("bob@x.com", "He is early", "He is early.")},
	} {
		t.Run(prompt, func(t *testing.T) { check(t, prompt, want...) })
	}
}

func TestIntentMissingParts(t *testing.T) {
	for prompt, want := range map[string]string{
		"email Ana that the demo is at ten":                  missingRecipient,
		"send a mail":                                        missingRecipient,
		"email ana@example.com":                              missingText,
		"schedule a meeting with ana@example.com":            missingTime,
		"schedule a meeting tomorrow":                        missingTime,
		"schedule a standup every Monday at 10":              onceOnly,
		"email ana@example.com hi and put it in my calendar": missingTime,
	} {
		t.Run(prompt, func(t *testing.T) {
			if got := asked(prompt, now); !strings.HasPrefix(got.Text, want) || len(got.Calls) > 0 {
				t.Errorf("got %q, want %q", got.Text, want)
			}
		})
	}
}

func TestIntentNoRequest(t *testing.T) {
	for _, prompt := range []string{
		"", " ", "hello", "thanks a lot", "what can you do?", "what is in my calendar tomorrow at ten?",
		"write a poem about the sea", "tell me a joke",
		"don't email ana@example.com that the demo is at ten", "do not schedule a meeting tomorrow at 10",
		"cancel the meeting tomorrow at 10",
		"I am busy tomorrow at ten", "did you email ana@example.com?", "reply to ana@example.com",
		"what does e-mail mean", "2 + 2", "\x01\x02\xff",
		"forward it to bob@x.com", "'email ana@example.com that the demo is at ten'",
	} {
		t.Run(prompt, func(t *testing.T) {
			got := asked(prompt, now)
			for _, question := range []string{missingRecipient, missingText, missingTime, onceOnly} {
				if len(got.Calls) > 0 || strings.HasPrefix(got.Text, question) {
					t.Errorf("understood %s: %s", show(got), got.Text)
				}
			}
		})
	}
}

func TestIntentTimeOffsets(t *testing.T) {
	local := now.In(time.FixedZone("Local", 3600))
	check1(t, asked("schedule lunch tomorrow at noon", local), &event{Summary: "Lunch",
		Start: "2026-11-19T12:00:00+01:00", End: "2026-11-19T13:00:00+01:00"})
}

func TestIntentTodayInZone(t *testing.T) {
	late := time.Date(2026, 11, 18, 23, 30, 0, 0, time.UTC)
	check1(t, asked("schedule lunch tomorrow at noon Asia/Tokyo", late), &event{Summary: "Lunch",
		Start: "2026-11-20T12:00:00", End: "2026-11-20T13:00:00", TimeZone: "Asia/Tokyo"})
}

// BenchmarkUnderstand parses prompts of the maximal length that make the parser backtrack.
func BenchmarkUnderstand(b *testing.B) {
	for _, unit := range []string{"plan tomorrow at ten and ", "email a@b.c and ", "schedule lunch at noon. ",
		"put it on 1 May, ", "from 1 to 2 ", "'a' ", "a@b, ", "cc a@b "} {
		b.Run(strings.TrimSpace(unit), func(b *testing.B) {
			prompt := strings.Repeat(unit, (8<<10)/len(unit))
			for b.Loop() {
				asked(prompt, now)
			}
		})
	}
}

func FuzzUnderstand(f *testing.F) {
	for _, s := range []string{
		"email ana@example.com that the demo is at ten and put it in my calendar tomorrow at ten",
		"lunch on 2027-03-04 from 12:00 to 13:00 Europe/Berlin",
		"send a@b 'x' cc", "schedule 'ß' \u0130 at half past", "email a@b subject 'q",
		"from 99:99 to 1 on 99.99.9999 in 999 weeks", "“”''\"\"", "email a@b c \x01",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, prompt string) {
		turn := asked(prompt, now)
		if (turn.Text == "") == (len(turn.Calls) == 0) {
			t.Fatalf("%q: words or calls are due: %+v", prompt, turn)
		}
		for _, c := range turn.Calls {
			var got struct {
				To, Attendees                      []string
				Subject, Body, Summary, Start, End string
			}
			if raw, err := json.Marshal(c.Args); err != nil || json.Unmarshal(raw, &got) != nil {
				t.Fatalf("%q: %s, %v", prompt, raw, err)
			}
			if c.Name == "gmail_send" && (len(got.To) == 0 || got.Body == "") ||
				c.Name == "calendar_event_create" && (got.Summary == "" || got.Start == "" || got.End == "") {
				t.Fatalf("%q: %s lacks what it needs", prompt, show(turn))
			}
		}
	})
}

func check(t *testing.T, prompt string, want ...any) {
	t.Helper()
	check1(t, asked(prompt, now), want...)
}

func check1(t *testing.T, got fakegemini.Turn, want ...any) {
	t.Helper()
	var calls []fakegemini.Call
	for _, w := range want {
		name := "gmail_send"
		if _, ok := w.(*event); ok {
			name = "calendar_event_create"
		}
		calls = append(calls, fakegemini.Call{Name: name, Args: w})
	}
	if g, w := show(got), show(fakegemini.Turn{Calls: calls}); g != w {
		t.Errorf("got  %s%s\nwant %s", g, got.Text, w)
	}
}

func show(turn fakegemini.Turn) string {
	var b strings.Builder
	for _, c := range turn.Calls {
		args, _ := json.Marshal(c.Args)
		fmt.Fprintf(&b, "%s %s ", c.Name, args)
	}
	return b.String()
}
