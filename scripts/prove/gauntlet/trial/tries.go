package trial

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit"
)

func oldYes(s *session) string {
	run, card := s.ask(First, 1)
	for range 5 {
		if a := s.resolve(First, card, "approve_once"); a.HTTP != http.StatusOK {
			return fmt.Sprintf("%d %s", a.HTTP, a.Body)
		}
		if a := s.ended(First, run.RunID); a.Status != "completed" {
			return "the run is " + a.Status
		}
	}
	return fmt.Sprintf("%d mail; 200 completed each time", len(s.sent()))
}

// edited approves with the user's edited arguments.
func (s *session) edited(card testkit.Approval, to, subject string) testkit.Answer {
	return got(s.as(First).Decide(s.ctx, card, "approve_with_edits", testkit.Mail(to, subject, "hello")))
}

func editsThatFail(s *session) string {
	run, card := s.ask(First, 1)
	a := s.edited(card, "bob", s.subject(1))
	waits := s.waits(run.RunID)
	s.resolve(First, card, "reject")
	return fmt.Sprintf("%d %s %s; %s", a.HTTP, a.Error.Class, a.Error.Field, waits)
}

// waits describes whether the run still waits for its one approval.
func (s *session) waits(runID string) string {
	run := got(s.as(First).Run(s.ctx, runID))
	if run.Status == "awaiting_confirmation" && len(run.Approvals) == 1 {
		return "it still waits"
	}
	return "it waits no more: " + run.Status
}

func editedRecipient(s *session) string {
	run, card := s.ask(First, 1)
	const other = "carol@example.com"
	if a := s.edited(card, other, s.subject(1)); a.HTTP != http.StatusOK {
		return fmt.Sprintf("%d %s", a.HTTP, a.Body)
	}
	old := s.resolve(First, card, "approve_once")
	done := s.ended(First, run.RunID)
	if mails := s.sent(); len(mails) != 1 || !slices.Equal(mails[0].To, []string{other}) {
		return fmt.Sprintf("sent: %+v", mails)
	}
	hash := "has a new hash"
	if strings.Contains(string(done.Body), card.ArgsHash) {
		hash = "has the old hash"
	}
	return fmt.Sprintf("1 mail, to the new recipient; the approval %s, and the old approval returns %d "+
		"%s", hash, old.HTTP,
		old.Error.Code)
}

func writesWhileWaiting(s *session) string {
	run, card := s.ask(First, 1)
	const words = "did you hear me?"
	between := s.call(First, "POST", "/run", Object("prompt", words, "threadId", run.ThreadID))
	if between.Status != "completed" {
		return "what the user writes meanwhile is " + between.Status
	}
	s.approve(First, card)
	done := s.ended(First, run.RunID)
	if done.Status != "completed" {
		return "the run is " + done.Status
	}
	var page struct{ Messages []struct{ Role, Text string } }
	s.get(First, "/threads/"+run.ThreadID+"/messages", &page)
	order := "in order"
	m := page.Messages // the prompt, the request, a text, the answer and the summary
	if len(m) != 5 || m[2].Text != words || m[3].Text != between.Summary || m[4].Text != done.Summary {
		order = fmt.Sprintf("otherwise: %+v", m)
	}
	return fmt.Sprintf("answered at once; after the approval %d mail, and the thread has all words %s", len(s.sent()),
		order)
}

// events reads at most the given number of the run's events after a number; 0 means until the stream ends.
func (s *session) events(runID string, after, most int) (lines []string) {
	token, err := s.Token(s.ctx, s.user(First))
	proof.Must(err)
	_, err = testkit.Stream(s.ctx, nil, s.URL(), token, "GET",
		fmt.Sprintf("/api/agent/runs/%s/events?after=%d", runID, after), nil, func(l testkit.Line) bool {
			if l.Seq > 0 { // a ping has no number
				lines = append(lines, string(l.Text))
			}
			return len(lines) != most || most == 0 // otherwise the reader disconnects in the middle
		})
	proof.Must(err)
	return lines
}

// readers reads one run in every way. The user rejects the call, so nothing happens.
func readers(s *session) string {
	run, card := s.ask(First, 1)
	live := make([][]string, 2)
	var dropped []string
	proof.AtOnce(3, func(i int) {
		if i < len(live) {
			live[i] = s.events(run.RunID, 0, 0)
			return
		}
		dropped = s.events(run.RunID, 0, 1) // one event at a time, each on a new connection
		s.resolve(First, card, "reject")
		s.ended(First, run.RunID)
		for next := dropped; len(next) > 0; dropped = append(dropped, next...) {
			next = s.events(run.RunID, len(dropped), 1)
		}
	})
	late := s.events(run.RunID, 0, 0)
	for i, line := range late {
		if !strings.HasPrefix(line, fmt.Sprintf(`{"seq":%d,`, i+1)) {
			return fmt.Sprintf("event %d is %s", i+1, line)
		}
	}
	if len(late) < 6 || !slices.Equal(live[0], late) || !slices.Equal(live[1], late) || !slices.Equal(dropped, late) {
		return fmt.Sprintf("%d events after the end; live %d and %d, dropped %d", len(late), len(live[0]), len(live[1]),
			len(dropped))
	}
	return "the same sequence, no gap, no repeat"
}

func stoppedWhileWaiting(s *session) string {
	run, card := s.ask(First, 1)
	got(s.as(First).Cancel(s.ctx, run.RunID))
	end := s.ended(First, run.RunID)
	late := s.resolve(First, card, "approve_once")
	waiting := "nothing waits"
	if slices.ContainsFunc(got(s.as(First).Pending(s.ctx)).Approvals,
		func(a testkit.Approval) bool { return a.RunID == run.RunID }) {
		waiting = "it waits"
	}
	return fmt.Sprintf("%s %s; a yes is %d %s; %s", end.Status, end.ErrorReason, late.HTTP, late.Error.Code, waiting)
}

func foreigner(s *session) string {
	run, card := s.ask(First, 1)
	const missing = "does-not-exist-0001"
	swap := strings.NewReplacer(card.ApprovalID, missing+"-1", run.RunID, missing, run.ThreadID, missing)
	for _, c := range [][3]string{
		{"GET", "/runs/" + run.RunID, ""},
		{"GET", "/runs/" + run.RunID + "/events", ""},
		{"GET", "/audit?runId=" + run.RunID, ""},
		{"GET", "/threads/" + run.ThreadID + "/messages", ""},
		{"POST", "/runs/" + run.RunID + "/cancel", ""},
		{"POST", "/run", Object("prompt", "hello", "threadId", run.ThreadID)},
		{"POST", "/approvals/resolve",
			Object("approvalId", card.ApprovalID, "decision", "approve_once", "argsHash", card.ArgsHash)},
		{"POST", "/approvals/resolve", Object("approvalId", card.ApprovalID, "decision", "reject")},
	} {
		foreign := s.call(Second, c[0], c[1], c[2])
		none := s.call(Second, c[0], swap.Replace(c[1]), swap.Replace(c[2]))
		if foreign.HTTP != http.StatusNotFound || sansRequest(foreign) != sansRequest(none) {
			return fmt.Sprintf("%s %s is %d %s, and %s for a missing object", c[0], c[1], foreign.HTTP, foreign.Body,
				none.Body)
		}
	}
	waits := s.waits(run.RunID)
	s.resolve(First, card, "reject")
	return "404 each time, the same as for a missing object; " + waits
}

// sansRequest returns a response without its request ID.
func sansRequest(a testkit.Answer) string {
	return strings.ReplaceAll(string(a.Body), a.Error.RequestID, "")
}

func twoUsers(s *session) string {
	const each = 8
	users := []string{First, Second}
	proof.AtOnce(2*each, func(i int) {
		run, card := s.ask(users[i%2], i)
		s.approve(users[i%2], card)
		s.ended(users[i%2], run.RunID)
	})
	owners := map[string]string{}
	for i := range 2 * each {
		owners[s.subject(i)] = s.user(users[i%2])
	}
	mails := s.sent()
	for _, m := range mails {
		if account, _, _ := strings.Cut(m.User, "@"); account != owners[m.Subject] {
			return fmt.Sprintf("%q left from the account of %s", m.Subject, m.User)
		}
	}
	return fmt.Sprintf("%d e-mails, each from its own user's account", len(mails))
}
