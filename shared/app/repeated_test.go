package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// TestARepeatedMailAsks makes the model repeat an e-mail that was requested once, in the same turn or the next,
// although its recipient is always allowed. One e-mail is sent without asking, and the other waits on a card that says
// so.
func TestARepeatedMailAsks(t *testing.T) {
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
					t.Errorf("%d mails went out unasked: %s", sent, a.Body)
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
					t.Errorf("after the no %d mails are out", sent)
				}
			})
		})
	}
}
