package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/testkit"
)

func oldYes(ctx context.Context, s *session) (string, error) {
	run, card, err := s.ask(ctx, First, 1)
	if err != nil {
		return "", err
	}
	for range 5 {
		a, err := s.resolve(ctx, First, card, "approve_once")
		if err != nil || a.HTTP != http.StatusOK {
			return fmt.Sprintf("%d %s", a.HTTP, a.Body), err
		}
		if a, err = s.ended(ctx, First, run.RunID); err != nil || a.Status != "completed" {
			return "the run is " + a.Status, err
		}
	}
	mails, err := s.sent(ctx)
	return fmt.Sprintf("%d mail; 200 completed each time", len(mails)), err
}

// edited decides with arguments of the user's own.
func (s *session) edited(ctx context.Context, card testkit.Approval, to, subject string) (testkit.Answer, error) {
	return s.as(First).Decide(ctx, card, "approve_with_edits", testkit.Mail(to, subject, "hello"))
}

func editsThatFail(ctx context.Context, s *session) (string, error) {
	run, card, err := s.ask(ctx, First, 1)
	if err != nil {
		return "", err
	}
	a, err := s.edited(ctx, card, "bob", s.subject(1))
	if err != nil {
		return "", err
	}
	waits, err := s.waits(ctx, run.RunID)
	if err != nil {
		return "", err
	}
	_, err = s.resolve(ctx, First, card, "reject")
	return fmt.Sprintf("%d %s %s; %s", a.HTTP, a.Error.Class, a.Error.Field, waits), err
}

// waits reports whether the run still waits for its one approval.
func (s *session) waits(ctx context.Context, runID string) (string, error) {
	run, err := s.as(First).Run(ctx, runID)
	if run.Status == "awaiting_confirmation" && len(run.Approvals) == 1 {
		return "it still waits", err
	}
	return "it waits no more: " + run.Status, err
}

func editedRecipient(ctx context.Context, s *session) (string, error) {
	run, card, err := s.ask(ctx, First, 1)
	if err != nil {
		return "", err
	}
	const other = "carol@example.com"
	a, err := s.edited(ctx, card, other, s.subject(1))
	if err != nil || a.HTTP != http.StatusOK {
		return fmt.Sprintf("%d %s", a.HTTP, a.Body), err
	}
	old, err := s.resolve(ctx, First, card, "approve_once")
	if err != nil {
		return "", err
	}
	done, err := s.ended(ctx, First, run.RunID)
	if err != nil {
		return "", err
	}
	mails, err := s.sent(ctx)
	if err != nil || len(mails) != 1 || !slices.Equal(mails[0].To, []string{other}) {
		return fmt.Sprintf("sent: %+v", mails), err
	}
	hash := "has a new hash"
	if strings.Contains(string(done.Body), card.ArgsHash) {
		hash = "has the old hash"
	}
	return fmt.Sprintf("1 mail, to the new recipient; the approval %s, and the old yes is %d %s", hash, old.HTTP,
		old.Error.Code), nil
}

func writesWhileWaiting(ctx context.Context, s *session) (string, error) {
	run, card, err := s.ask(ctx, First, 1)
	if err != nil {
		return "", err
	}
	const words = "did you hear me?"
	between, err := s.call(ctx, First, "POST", "/run", Object("prompt", words, "threadId", run.ThreadID))
	if err != nil || between.Status != "completed" {
		return "what the user writes meanwhile is " + between.Status, err
	}
	if err := s.approve(ctx, First, card); err != nil {
		return "", err
	}
	done, err := s.ended(ctx, First, run.RunID)
	if err != nil || done.Status != "completed" {
		return "the run is " + done.Status, err
	}
	mails, err := s.sent(ctx)
	if err != nil {
		return "", err
	}
	a, err := s.call(ctx, First, "GET", "/threads/"+run.ThreadID+"/messages", "")
	if err != nil {
		return "", err
	}
	var page struct{ Messages []struct{ Role, Text string } }
	if err := json.Unmarshal(a.Body, &page); err != nil {
		return "", err
	}
	order := "in order"
	m := page.Messages // prompt, request, words, answer, summary
	if len(m) != 5 || m[2].Text != words || m[3].Text != between.Summary || m[4].Text != done.Summary {
		order = fmt.Sprintf("otherwise: %+v", m)
	}
	return fmt.Sprintf("answered at once; after the yes %d mail, and the thread holds all words %s", len(mails), order),
		nil
}

// events reads at most so many of the run's events after a number; 0 means until the stream ends.
func (s *session) events(ctx context.Context, runID string, after, most int) (lines []string, err error) {
	token, err := s.Token(ctx, s.user(First))
	if err != nil {
		return nil, err
	}
	_, err = testkit.Stream(ctx, nil, s.URL(), token, "GET",
		fmt.Sprintf("/api/agent/runs/%s/events?after=%d", runID, after), nil, func(l testkit.Line) bool {
			if l.Seq > 0 { // and no ping
				lines = append(lines, string(l.Text))
			}
			return len(lines) != most || most == 0 // where not all are read, the reader has gone in the middle
		})
	return lines, err
}

// readers reads one run in every way. Its user rejects the call, so that it is not carried out.
func readers(ctx context.Context, s *session) (string, error) {
	run, card, err := s.ask(ctx, First, 1)
	if err != nil {
		return "", err
	}
	live := make([][]string, 2)
	read := make(chan error, 1)
	go func() {
		read <- atOnce(len(live), func(i int) (err error) {
			live[i], err = s.events(ctx, run.RunID, 0, 0)
			return err
		})
	}()
	dropped, err := s.events(ctx, run.RunID, 0, 1) // one event at a time, each over a connection of its own
	if err != nil {
		return "", err
	}
	if _, err := s.resolve(ctx, First, card, "reject"); err != nil {
		return "", err
	}
	if _, err := s.ended(ctx, First, run.RunID); err != nil {
		return "", err
	}
	for {
		next, err := s.events(ctx, run.RunID, len(dropped), 1)
		if err != nil {
			return "", err
		}
		if len(next) == 0 {
			break
		}
		dropped = append(dropped, next...)
	}
	if err := <-read; err != nil {
		return "", err
	}
	late, err := s.events(ctx, run.RunID, 0, 0)
	if err != nil {
		return "", err
	}
	for i, line := range late {
		if !strings.HasPrefix(line, fmt.Sprintf(`{"seq":%d,`, i+1)) {
			return fmt.Sprintf("event %d is %s", i+1, line), nil
		}
	}
	if len(late) < 6 || !slices.Equal(live[0], late) || !slices.Equal(live[1], late) || !slices.Equal(dropped, late) {
		return fmt.Sprintf("%d events after the end; live %d and %d, dropped %d", len(late), len(live[0]), len(live[1]),
			len(dropped)), nil
	}
	return "the same sequence, no gap, no repeat", nil
}

func stoppedWhileWaiting(ctx context.Context, s *session) (string, error) {
	run, card, err := s.ask(ctx, First, 1)
	if err != nil {
		return "", err
	}
	if _, err := s.as(First).Cancel(ctx, run.RunID); err != nil {
		return "", err
	}
	end, err := s.ended(ctx, First, run.RunID)
	if err != nil {
		return "", err
	}
	late, err := s.resolve(ctx, First, card, "approve_once")
	if err != nil {
		return "", err
	}
	pending, err := s.as(First).Pending(ctx)
	if err != nil {
		return "", err
	}
	waiting := "nothing waits"
	if slices.ContainsFunc(pending.Approvals, func(a testkit.Approval) bool { return a.RunID == run.RunID }) {
		waiting = "it waits"
	}
	return fmt.Sprintf("%s %s; a yes is %d %s; %s", end.Status, end.ErrorReason, late.HTTP, late.Error.Code, waiting),
		nil
}

func foreigner(ctx context.Context, s *session) (string, error) {
	run, card, err := s.ask(ctx, First, 1)
	if err != nil {
		return "", err
	}
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
		foreign, err := s.call(ctx, Second, c[0], c[1], c[2])
		if err != nil {
			return "", err
		}
		none, err := s.call(ctx, Second, c[0], swap.Replace(c[1]), swap.Replace(c[2]))
		if err != nil {
			return "", err
		}
		if foreign.HTTP != http.StatusNotFound || sansRequest(foreign) != sansRequest(none) {
			return fmt.Sprintf("%s %s is %d %s, and %s for what is not there", c[0], c[1], foreign.HTTP, foreign.Body,
				none.Body), nil
		}
	}
	waits, err := s.waits(ctx, run.RunID)
	if err != nil {
		return "", err
	}
	_, err = s.resolve(ctx, First, card, "reject")
	return "404 each time, the same as for what is not there; " + waits, err
}

// sansRequest is an answer without the id of its request.
func sansRequest(a testkit.Answer) string {
	return strings.ReplaceAll(string(a.Body), a.Error.RequestID, "")
}

func twoUsers(ctx context.Context, s *session) (string, error) {
	const each = 8
	users := []string{First, Second}
	err := atOnce(2*each, func(i int) error {
		user := users[i%2]
		run, card, err := s.ask(ctx, user, i)
		if err != nil {
			return err
		}
		if err := s.approve(ctx, user, card); err != nil {
			return err
		}
		_, err = s.ended(ctx, user, run.RunID)
		return err
	})
	if err != nil {
		return "", err
	}
	mails, err := s.sent(ctx)
	if err != nil {
		return "", err
	}
	owners := map[string]string{}
	for i := range 2 * each {
		owners[s.subject(i)] = s.user(users[i%2])
	}
	for _, m := range mails {
		if account, _, _ := strings.Cut(m.User, "@"); account != owners[m.Subject] {
			return fmt.Sprintf("%q left from the account of %s", m.Subject, m.User), nil
		}
	}
	return fmt.Sprintf("%d mails, each from its own user's account", len(mails)), nil
}
