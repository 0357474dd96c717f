package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// TestRepeatedMail makes the model repeat an e-mail that was requested once, in the same turn or the next, although its
// recipient is always allowed. One e-mail is sent without asking, and the other waits on a card that says so.
func TestRepeatedMail(t *testing.T) {
	send := func(subject string) fakegemini.Call {
		return fakegemini.Call{Name: "gmail_send", Args: testkit.Mail("ken@example.org", subject, "At one.")}
	}
	for name, c := range map[string]struct {
		turns [][]fakegemini.Call
		says  string
	}{
		"in one turn":  {[][]fakegemini.Call{{send("Demo"), send("Demo")}}, "Exactly this"},
		"in two turns": {[][]fakegemini.Call{{send("Demo")}, {send("Demo")}}, "You already sent exactly this at"},
	} {
		t.Run(name, func(t *testing.T) {
			onBothStores(t, func(t *testing.T, w linked) {
				w.SetModel(testkit.Wants("gmail_send", send("Before").Args))
				w.ask()
				w.wants("always", w.decide(w.card(), "approve_and_always_allow_recipient"), http.StatusOK, "")
				w.deliver()
				before := len(w.Google.Messages())
				w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
					if n := r.Answered(); n < len(c.turns) && !r.NoTools {
						return fakegemini.Turn{Calls: c.turns[n]}
					}
					return fakegemini.Turn{Text: "done"}
				})
				r := w.ask()
				w.deliver()
				sent := len(w.Google.Messages()) - before
				if a := w.run(r.RunID); sent != 1 || a.Status != "awaiting_confirmation" {
					t.Errorf("%d e-mails went out unasked: %s", sent, a.Body)
				}
				card := w.card()
				if said := strings.Join(card.preview.Warnings, "\n"); !strings.Contains(said, c.says) {
					t.Errorf("the card warns %q", said)
				}
				for _, m := range card.preview.Moments {
					_, err := time.Parse(time.RFC3339, m.At)
					if m.Of != card.preview.Warnings[0] || !strings.Contains(m.Of, m.Text) || err != nil {
						t.Errorf("it has the moment %+v", m)
					}
				}
				if timed := strings.HasSuffix(c.says, " at"); timed != (len(card.preview.Moments) == 1) {
					t.Errorf("it has %d moments", len(card.preview.Moments))
				}
				w.wants("the no", w.decide(card, "reject"), http.StatusOK, "")
				w.deliver()
				if sent := len(w.Google.Messages()) - before; sent != 1 {
					t.Errorf("after the no %d e-mails are out", sent)
				}
			})
		})
	}
}

// TestRepeatedMailInOtherBytes makes the model repeat an e-mail in other bytes that its reader cannot tell apart. The
// second one waits, in the same run and in the conversation's next run, and its card says what differs.
func TestRepeatedMailInOtherBytes(t *testing.T) {
	mail := func(subject, body string) map[string]any { return testkit.Mail("ken@example.org", subject, body) }
	for name, other := range map[string]map[string]any{
		"a line end":       mail("D\u00e9mo", "At one. Bring\nnotes.\n"),
		"two spaces":       mail("D\u00e9mo ", "At one.  Bring\nnotes."),
		"a no-break space": mail("D\u00e9mo", "At\u00a0one. Bring\nnotes."),
		"zero width":       mail("D\u00e9mo\u200b", "At one. Bring\nnotes."),
		"accents":          mail("De\u0301mo", "At one. Bring\nnotes."),
		"capitals":         mail("D\u00c9MO", "At one. Bring\nNotes."),
	} {
		t.Run(name, func(t *testing.T) {
			w := newLinked(t)
			w.waits("ana", "gmail_send", mail("Before", "One."))
			w.wants("always", w.decide(w.card(), "approve_and_always_allow_recipient"), http.StatusOK, "")
			w.deliver()
			first := fakegemini.Call{Name: "gmail_send", Args: mail("D\u00e9mo", "At one. Bring\nnotes.")}
			before := len(w.Google.Messages())
			w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
				switch {
				case r.NoTools || r.Answered() > 1:
					return fakegemini.Turn{Text: "done"}
				case r.Answered() == 1:
					return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "gmail_send", Args: other}}}
				}
				return fakegemini.Turn{Calls: []fakegemini.Call{first}}
			})
			r := w.ask()
			w.deliver()
			a, err := w.run(r.RunID), error(nil)
			if sent := len(w.Google.Messages()) - before; sent != 1 || a.Status != "awaiting_confirmation" {
				t.Fatalf("%d e-mails went out unasked: %s", sent, a.Body)
			}
			said := strings.Join(w.card().preview.Warnings, "\n")
			if !strings.Contains(said, "You already sent exactly this at") ||
				!strings.Contains(said, "Only spaces, capitals, quotation marks") {
				t.Errorf("the card warns %q", said)
			}
			w.wants("the no", w.decide(w.card(), "reject"), http.StatusOK, "")
			w.deliver()
			w.SetModel(testkit.Wants("gmail_send", other))
			a, err = w.Call(t.Context(), "ana", "POST", "/api/agent/run",
				`{"prompt":"and again","threadId":"`+r.ThreadID+`"}`)
			if err != nil || len(a.Actions) != 1 || a.Actions[0].Status != "awaiting_confirmation" {
				t.Errorf("in the next run: %v %s", err, a.Body)
			}
		})
	}
}

// TestRepeatedEventInAnotherZone makes the model create an event again, with the same instants and invitees, in another
// time zone and order. The card says that it repeats the first one.
func TestRepeatedEventInAnotherZone(t *testing.T) {
	w := newLinked(t)
	event := map[string]any{"summary": "Demo", "start": "2027-01-05T10:00:00+01:00", "end": "2027-01-05T11:00:00+01:00",
		"attendees": []string{"ken@example.org", "bob@example.org"}}
	w.SetModel(testkit.Wants("calendar_event_create", event))
	r := w.ask()
	w.wants("the yes", w.decide(w.card(), "approve_once"), http.StatusOK, "")
	w.deliver()
	again := map[string]any{"summary": "Demo", "start": "2027-01-05T10:00:00", "end": "2027-01-05T11:00:00",
		"timeZone": "Europe/Berlin", "attendees": []string{"bob@example.org", "ken@example.org"}}
	w.SetModel(testkit.Wants("calendar_event_create", again))
	if a, err := w.Call(t.Context(), "ana", "POST", "/api/agent/run",
		`{"prompt":"and again","threadId":"`+r.ThreadID+`"}`); err != nil || len(a.Approvals) != 1 {
		t.Fatalf("%v %s; want one card", err, a.Body)
	}
	said := strings.Join(w.card().preview.Warnings, "\n")
	if !strings.Contains(said, "exactly this at") || !strings.Contains(said, "the time zone, or the order of a list") {
		t.Errorf("the card warns %q", said)
	}
}
