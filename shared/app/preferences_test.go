package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/preference"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/tools/calendar"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

const memoryPath = "/api/agent/memory"

// preferences returns ana's preferences.
func (w *proved) preferences() preference.Set {
	w.t.Helper()
	var got struct{ Preferences preference.Set }
	a := w.call("GET", memoryPath, "")
	if err := json.Unmarshal(a.Body, &got); err != nil || a.HTTP != http.StatusOK {
		w.t.Fatalf("%d %s, %v; want a.HTTP %v", a.HTTP, a.Body, err, http.StatusOK)
	}
	return got.Preferences
}

// prefers changes ana's preferences.
func (w *proved) prefers(change func(*preference.Set)) {
	w.t.Helper()
	set := w.preferences()
	change(&set)
	body, err := json.Marshal(map[string]any{"preferences": set})
	if err != nil {
		w.t.Fatal(err)
	}
	if a := w.call("PATCH", memoryPath, string(body)); a.HTTP != http.StatusOK {
		w.t.Fatalf("%s; want a.HTTP %v", a.Body, http.StatusOK)
	}
}

// seen returns all that the model reads: the instructions and the contents.
func seen(r fakegemini.Request) string {
	all := r.System
	for _, c := range r.Raw {
		all += "\n" + string(c)
	}
	return all
}

// asksFor makes the model make a call, and returns the run, its card, and the text that the model's first request has.
func (w *proved) asksFor(name string, args any) (r testkit.Answer, card, read string) {
	w.t.Helper()
	calls := testkit.Wants(name, args)
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		if read == "" {
			read = seen(r)
		}
		return calls(r)
	})
	r = w.ask()
	return r, string(w.call("GET", "/api/agent/approvals/pending", "").Body), read
}

// TestPreferences sets the preferences, and checks their limits, two tabs, the export and the deletion.
func TestPreferences(t *testing.T) {
	onEachStore(t, func(t *testing.T, settings ...string) {
		w := deploy(t, settings...)
		for body, field := range map[string]string{
			`{}`: "preferences",
			`{"preferences":{"meetingMinutes":1441}}`:                                                   "meetingMinutes",
			`{"preferences":{"meetingMinutes":-1}}`:                                                     "meetingMinutes",
			`{"preferences":{"meetingMinutes":"30"}}`:                                                   "preferences/meetingMinutes",
			`{"preferences":{"language":"de_DE.UTF8"}}`:                                                 "language",
			`{"preferences":{"shoeSize":44}}`:                                                           "preferences/shoeSize",
			`{"preferences":{"signature":"` + strings.Repeat("é", preference.MaxSignature+1) + `"}}`:    "signature",
			`{"preferences":{"workingHours":{"days":[],"from":"09:00","to":"17:00","timeZone":"UTC"}}}`: "workingHours/days",
			`{"preferences":{"workingHours":{"days":["mon"],"from":"17:00","to":"09:00",` +
				`"timeZone":"UTC"}}}`: "workingHours/to",
			`{"preferences":{"workingHours":{"days":["mon"],"from":"9:00","to":"17:00",` +
				`"timeZone":"UTC"}}}`: "workingHours/from",
			`{"preferences":{"workingHours":{"days":["mon"],"from":"09:00","to":"17:00",` +
				`"timeZone":"CET"}}}`: "workingHours/timeZone",
		} {
			if a := w.call("PATCH", memoryPath, body); a.HTTP != http.StatusBadRequest || a.Error.Field != field {
				t.Errorf("%s: %s; want a.HTTP %v, a.Error.Field %v", body, a.Body, http.StatusBadRequest, field)
			}
		}
		w.prefers(func(s *preference.Set) {
			s.Language, s.MeetingMinutes, s.Signature = "de-de", 30, "\nAna  \r\nACME\n"
			s.WorkingHours = &preference.WorkingHours{Days: []string{"fri", "mon"}, From: "09:00", To: "24:00",
				TimeZone: "Europe/Berlin"}
		})
		got := w.preferences()
		if got.Language != "de-DE" || got.Signature != "Ana\nACME" || got.UpdatedAt.IsZero() ||
			got.WorkingHours.String() != "Monday, Friday, 09:00–24:00 (Europe/Berlin)" {
			t.Errorf("%+v, %v", got, got.WorkingHours)
		}
		t.Run("two tabs", func(t *testing.T) { changesInTwoTabs(t, w) })
		var exported []preference.Set
		if err := w.App.API.Records.Export(t.Context(), "ana", func(i records.Item) error {
			if u, ok := i.Data.(run.User); ok {
				exported = append(exported, u.Preferences)
			}
			return nil
		}); err != nil || len(exported) != 1 || exported[0].Signature != "Ana\nACME" {
			t.Errorf("%v, exported %+v", err, exported)
		}
		log := string(w.call("GET", "/api/agent/audit", "").Body)
		holds(t, "the audit", log, `"kind":"preferences_changed"`)
		if all := log + w.Logs.String(); strings.Contains(all, "ACME") {
			t.Error("the audit or the log has the signature")
		}
		if a, err := w.Call(t.Context(), "bob", "GET", memoryPath, ""); err != nil ||
			!strings.Contains(string(a.Body), `"preferences":{}`) {
			t.Errorf("another user sees %s, %v", a.Body, err)
		}
		if _, err := w.App.API.Records.SetDisabled(t.Context(), "ana", true); err != nil {
			t.Fatal(err)
		}
		if err := w.App.API.Records.Erase(t.Context(), "ana"); err != nil {
			t.Fatal(err)
		}
		if _, got, err := w.App.API.Records.Memory(t.Context(), "ana"); err != nil || got != (preference.Set{}) {
			t.Errorf("%+v, %v after the deletion", got, err)
		}
	})
}

// changesInTwoTabs checks that a tab that shows older preferences does not replace newer ones, and that a repeated
// request is done.
func changesInTwoTabs(t *testing.T, w *proved) {
	old := w.preferences()
	w.prefers(func(s *preference.Set) { s.MeetingMinutes = 45 })
	for minutes, want := range map[int]int{20: http.StatusConflict, 45: http.StatusOK} {
		old.MeetingMinutes = minutes
		body, err := json.Marshal(map[string]any{"preferences": old})
		if err != nil {
			t.Fatal(err)
		}
		if a := w.call("PATCH", memoryPath, string(body)); a.HTTP != want || want == http.StatusConflict &&
			a.Error.Code != string(fault.CodeStaleView) {
			t.Errorf("%d minutes: %s; want a.HTTP %v", minutes, a.Body, want)
		}
	}
	if got := w.preferences().MeetingMinutes; got != 45 {
		t.Errorf("a meeting lasts %d minutes; want 45", got)
	}
}

// TestPreferredMeetingLength proposes an event without an end. The card shows the length that the user prefers, and a
// change before the approval does not alter the event.
func TestPreferredMeetingLength(t *testing.T) {
	w := deploy(t)
	lunch := map[string]any{"summary": "Lunch", "start": "2027-01-05T13:30:00", "timeZone": "Europe/Berlin"}
	r, _, read := w.asksFor(calendar.Name, lunch)
	if len(r.Approvals) > 0 || r.Actions[0].Field != "end" || strings.Contains(read, "it then lasts") {
		t.Fatalf("without the preference: %s\n%s", r.Body, read)
	}
	w.prefers(func(s *preference.Set) { s.MeetingMinutes = 90 })
	r, card, read := w.asksFor(calendar.Name, lunch)
	holds(t, "the model's request", read, "it then lasts 1 hour and 30 minutes, as they prefer")
	holds(t, "the card", card, `{"label":"Length, from your preferences","value":"1 hour and 30 minutes"}`,
		"Tuesday, 5 January 2027, 15:00 (Europe/Berlin, UTC+01:00)", `"end":"2027-01-05T15:00:00+01:00"`)
	w.prefers(func(s *preference.Set) { s.MeetingMinutes = 5 })
	if r = w.approve(r); r.Status != "completed" {
		t.Fatalf("%s; want r.Status “completed”", r.Body)
	}
	if end := w.Google.Events()[0]["end"].(map[string]any)["dateTime"]; end != "2027-01-05T15:00:00+01:00" {
		t.Errorf("the event ends at %v; want 2027-01-05T15:00:00+01:00", end)
	}
	t.Run("an end that is given", func(t *testing.T) {
		_, card, _ := w.asksFor(calendar.Name, map[string]any{"summary": "Dinner", "start": "2027-01-06T13:30:00Z",
			"end": "2027-01-06T14:00:00Z", "lasts": "2 days"})
		if strings.Contains(card, "from your preferences") {
			t.Errorf("the card says %s", card)
		}
	})
	t.Run("edits", func(t *testing.T) {
		r, _, _ := w.asksFor(calendar.Name, map[string]any{"summary": "Tea", "start": "2027-01-07T15:00:00Z"})
		edited := map[string]any{"summary": "Tea", "start": "2027-01-07T16:00:00Z", "lasts": "5 minutes"}
		if a := w.edit(r.Approvals[0], edited); a.HTTP != http.StatusOK {
			t.Fatalf("%s; want a.HTTP %v", a.Body, http.StatusOK)
		}
		w.deliver()
		got := w.Google.Events()[1]
		if end := got["end"].(map[string]any)["dateTime"]; end != "2027-01-07T16:05:00Z" {
			t.Errorf("%v; want an end 5 minutes after the start", got)
		}
	})
}

// TestWorkingHours proposes an event outside of the working hours, for people who are always allowed. The card warns,
// and the permission in advance does not apply.
func TestWorkingHours(t *testing.T) {
	w := deploy(t)
	event := func(start, end string) map[string]any {
		return map[string]any{"summary": "Sync", "start": start, "end": end, "attendees": []string{"bob@example.com"}}
	}
	r, _, _ := w.asksFor(calendar.Name, event("2027-01-05T03:00:00Z", "2027-01-05T03:30:00Z"))
	if a, err := w.Resolve(t.Context(), "ana", r.Approvals[0], "approve_and_always_allow_recipient"); err != nil ||
		a.HTTP != http.StatusOK {
		t.Fatalf("%s, %v; want a.HTTP %v", a.Body, err, http.StatusOK)
	}
	w.deliver()
	w.prefers(func(s *preference.Set) {
		s.WorkingHours = &preference.WorkingHours{Days: []string{"mon", "tue", "wed", "thu", "fri"}, From: "09:00",
			To: "17:00", TimeZone: "Europe/Berlin"}
	})
	r, _, read := w.asksFor(calendar.Name, event("2027-01-05T08:00:00Z", "2027-01-05T16:00:00Z"))
	if r.Status != "completed" || len(w.Google.Events()) != 2 {
		t.Fatalf("within the hours: %s; want r.Status “completed”", r.Body)
	}
	holds(t, "the model's request", read, "The user works Monday to Friday, 09:00–17:00 (Europe/Berlin).")
	const outside = "This is outside of your working hours: Monday to Friday, 09:00–17:00 (Europe/Berlin)."
	for _, c := range [][2]string{{"2027-01-05T07:59:00Z", "2027-01-05T09:00:00Z"},
		{"2027-01-06T15:30:00Z", "2027-01-06T16:01:00Z"}, {"2027-01-09T10:00:00Z", "2027-01-09T11:00:00Z"}} {
		r, card, _ := w.asksFor(calendar.Name, event(c[0], c[1]))
		if len(r.Approvals) != 1 || len(w.Google.Events()) != 2 {
			t.Fatalf("%v: %s; want a card", c, r.Body)
		}
		holds(t, "the card", card, outside, "the permissions that you gave in advance do not apply")
		if a, err := w.Resolve(t.Context(), "ana", r.Approvals[0], "reject"); err != nil || a.HTTP != http.StatusOK {
			t.Fatalf("%s, %v; want a.HTTP %v", a.Body, err, http.StatusOK)
		}
	}
	t.Run("a calendar that cannot be read", func(t *testing.T) {
		w.counted("calendar.events.list")
		r, card, _ := w.asksFor(calendar.Name, event("2027-01-10T10:00:00Z", "2027-01-10T11:00:00Z"))
		holds(t, "the card", card, outside)
		w.prefers(func(s *preference.Set) { s.WorkingHours = nil })
		if r = w.approve(r); r.Status != "completed" || len(w.Google.Events()) != 3 {
			t.Errorf("approved after a change of the preferences: %s; want r.Status “completed”", r.Body)
		}
	})
}

// TestWorkingHoursInvitation checks that the card of an accepted invitation warns, and that of a declined one does not.
func TestWorkingHoursInvitation(t *testing.T) {
	w := deploy(t, "AGENTS="+daysAgent(t, calendar.Respond))
	w.prefers(func(s *preference.Set) {
		s.WorkingHours = &preference.WorkingHours{Days: []string{"mon"}, From: "09:00", To: "17:00", TimeZone: "UTC"}
	})
	if err := w.Google.AddEvent(testkit.Address("ana"), map[string]any{"summary": "Review",
		"organizer": map[string]any{"email": "boss@example.com"},
		"start":     map[string]any{"dateTime": "2027-01-05T12:00:00Z"},
		"end":       map[string]any{"dateTime": "2027-01-05T13:00:00Z"},
		"attendees": []any{map[string]any{"email": testkit.Address("ana")}}}); err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[string]bool{"accepted": true, "tentative": true, "declined": false} {
		w.SetModel(testkit.Wants(calendar.Respond, map[string]any{"eventId": w.Google.Events()[0]["id"],
			"answer": answer}))
		r := w.askOf("days")
		card := string(w.call("GET", "/api/agent/approvals/pending", "").Body)
		if got := strings.Contains(card, "outside of your working hours: Monday, 09:00–17:00 (UTC)"); got != want {
			t.Errorf("%s: a warning: %v; want %v. The card: %s", answer, got, want, card)
		}
		if a, err := w.Resolve(t.Context(), "ana", r.Approvals[0], "reject"); err != nil || a.HTTP != http.StatusOK {
			t.Fatalf("%s, %v; want a.HTTP %v", a.Body, err, http.StatusOK)
		}
	}
}

// TestSignature sends e-mails that end with the user's signature, which the card shows, and which is there once.
func TestSignature(t *testing.T) {
	signed := func(s *preference.Set) { s.Signature = "Ana Ahlberg\nACME <https://acme.example>" }
	t.Run("mail", func(t *testing.T) {
		w := deploy(t)
		w.prefers(signed)
		r, card, read := w.asksFor(gmail.Name, map[string]any{"to": []string{"bob@example.com"}, "subject": "s",
			"body": "Noon is fine.", "signature": "Eve"})
		holds(t, "the model's request", read, "signature is added to each e-mail, so write none")
		holds(t, "the card", card, `{"label":"Signature, from your preferences",`+
			`"value":"Ana Ahlberg\nACME <https://acme.example>"`)
		w.prefers(func(s *preference.Set) { s.Signature = "Someone else" })
		holds(t, "the mail", w.sends(r), "\r\n\r\nNoon is fine.\r\n\r\n--=20\r\nAna Ahlberg\r\n"+
			"ACME <https://acme.example>")
	})
	t.Run("signed by the model", func(t *testing.T) {
		w := deploy(t)
		w.prefers(signed)
		r, card, _ := w.asksFor(gmail.Name, testkit.Mail("bob@example.com", "s",
			"Noon is fine.\n\n-- \nAna Ahlberg\nACME  <https://acme.example>\n"))
		if n := strings.Count(w.sends(r), "Ana Ahlberg"); n != 1 || strings.Contains(card, "from your preferences") {
			t.Errorf("%d signatures; want 1. The card: %s", n, card)
		}
	})
	t.Run("reply", func(t *testing.T) {
		w, id := answering(t, asked)
		w.prefers(signed)
		r, _ := w.proposes(map[string]any{"body": "Noon is fine.", "replyTo": map[string]any{"messageId": id}})
		raw := w.sends(r)
		before, after, _ := strings.Cut(raw, "Ana Ahlberg\r\nACME <https://acme.example>\r\n\r\nOn ")
		holds(t, "the reply before the signature", before, "Noon is fine.\r\n\r\n")
		holds(t, "the reply after it", after, "> Is noon fine?")
	})
	t.Run("always allowed", func(t *testing.T) {
		w := deploy(t)
		w.prefers(signed)
		r, _, _ := w.asksFor(gmail.Name, testkit.Mail("bob@example.com", "s", "One."))
		if a, err := w.Resolve(t.Context(), "ana", r.Approvals[0], "approve_and_always_allow_recipient"); err != nil ||
			a.HTTP != http.StatusOK {
			t.Fatalf("%s, %v; want a.HTTP %v", a.Body, err, http.StatusOK)
		}
		w.deliver()
		r, _, _ = w.asksFor(gmail.Name, testkit.Mail("bob@example.com", "s", "Two."))
		if sent := w.Google.Messages(); r.Status != "completed" || len(sent) != 2 ||
			!strings.Contains(sent[1].Raw, "Ana Ahlberg") {
			t.Errorf("the link in the signature is not the user's own: %s", r.Body)
		}
	})
	t.Run("edited away", func(t *testing.T) {
		w := deploy(t)
		w.prefers(signed)
		r, _, _ := w.asksFor(gmail.Name, testkit.Mail("bob@example.com", "s", "One."))
		if a := w.edit(r.Approvals[0], testkit.Mail("bob@example.com", "s", "One.")); a.HTTP != http.StatusOK {
			t.Fatalf("%s; want a.HTTP %v", a.Body, http.StatusOK)
		}
		w.deliver()
		if sent := w.Google.Messages(); len(sent) != 1 || strings.Contains(sent[0].Raw, "Ana Ahlberg") {
			t.Errorf("%+v", sent)
		}
	})
}

// TestPreferredLanguage checks that the language replaces the one that clients send, and that the latter applies again
// without it.
func TestPreferredLanguage(t *testing.T) {
	w := deploy(t)
	language := func() string {
		read := ""
		w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
			read = seen(r)
			return fakegemini.Turn{Text: "Hej."}
		})
		w.call("POST", "/api/agent/run", `{"prompt":"hi","locale":"en-GB","timeZone":"Europe/London"}`)
		_, after, _ := strings.Cut(read, "The user's language is ")
		return strings.Fields(after + " none")[0]
	}
	w.prefers(func(s *preference.Set) { s.Language = "da" })
	if got := language(); got != "da" {
		t.Errorf("the model reads the language %s; want da", got)
	}
	w.prefers(func(s *preference.Set) { s.Language = "" })
	if got := language(); got != "en-GB" {
		t.Errorf("the model reads the language %s; want en-GB", got)
	}
}

// TestWorkingHoursMoved moves an event, which always needs an approval. Outside of the working hours, also when the
// time is given in another zone, the card warns. A change that keeps the time has no warning.
func TestWorkingHoursMoved(t *testing.T) {
	w := deploy(t, "AGENTS="+daysAgent(t, calendar.Update))
	w.has("ana", "Lunch")
	id := w.Google.Events()[0]["id"]
	moves := func(change map[string]any) (testkit.Answer, string) {
		change["eventId"] = id
		w.SetModel(testkit.Wants(calendar.Update, change))
		r := w.askOf("days")
		return r, string(w.call("GET", "/api/agent/approvals/pending", "").Body)
	}
	w.prefers(func(s *preference.Set) {
		s.WorkingHours = &preference.WorkingHours{Days: []string{"mon", "tue"}, From: "09:00", To: "17:00",
			TimeZone: "Europe/Berlin"}
	})
	for _, c := range []struct {
		start, end, zone string
		outside          bool
	}{
		{"2027-01-05T08:00:00Z", "", "", false},
		{"2027-01-05T07:59:00Z", "", "", true},
		{"2027-01-05T15:30:00Z", "", "", true},
		{"2027-01-05T15:30:00Z", "2027-01-05T16:00:00Z", "", false},
		{"2027-01-05T09:00:00", "2027-01-05T10:00:00", "America/New_York", false},
		{"2027-01-05T11:00:00", "", "America/New_York", true},
		{"2027-01-06T00:30:00", "2027-01-06T00:45:00", "Asia/Tokyo", false},
		{"2027-01-06T10:00:00", "", "Asia/Tokyo", true},
		{"2027-01-06T10:00:00Z", "", "", true},
		{"", "", "", false},
	} {
		change := map[string]any{"summary": "Late lunch"}
		for name, value := range map[string]string{"start": c.start, "end": c.end, "timeZone": c.zone} {
			if value != "" {
				change[name] = value
			}
		}
		r, card := moves(change)
		if got := strings.Contains(card, "This is outside of your working hours: Monday, Tuesday, 09:00–17:00"); got !=
			c.outside {
			t.Errorf("%+v: a warning: %t; want %t. %s %s", c, got, c.outside, r.Body, card)
		}
		if len(r.Approvals) != 1 {
			t.Fatalf("%+v: %s; want len(r.Approvals) 1", c, r.Body)
		}
		if a, err := w.Resolve(t.Context(), "ana", r.Approvals[0], "reject"); err != nil || a.HTTP != http.StatusOK {
			t.Fatalf("%s, %v; want a.HTTP %v", a.Body, err, http.StatusOK)
		}
	}
}
