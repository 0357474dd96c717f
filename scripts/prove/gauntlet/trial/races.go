package trial

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit"
)

func twentyYeses(s *session) string {
	run, card := s.ask(First, 1)
	var answered atomic.Int64
	proof.AtOnce(20, func(int) {
		a := s.resolve(First, card, "approve_once")
		if a.HTTP == http.StatusOK && len(a.Actions) == 1 &&
			strings.Contains(string(a.Body), `"decision":"approve_once"`) {
			answered.Add(1)
		}
	})
	s.ended(First, run.RunID)
	return fmt.Sprintf("%d mail; %d of 20 answered with one outcome", len(s.sent()), answered.Load())
}

// yesAgainstNo races several times, so that each side has a chance to win.
func yesAgainstNo(s *session) string {
	for n := range 10 {
		if odd := s.race(n); odd != "" {
			return odd
		}
	}
	return "one wins each time; the loser gets 409 already_resolved with the decision and its time; both are " +
		"in the audit"
}

func (s *session) race(n int) (odd string) {
	run, card := s.ask(First, n)
	decisions := []string{"approve_once", "reject"}
	answers := make([]testkit.Answer, 2)
	proof.AtOnce(2, func(i int) { answers[i] = s.resolve(First, card, decisions[i]) })
	winner := slices.IndexFunc(answers, func(a testkit.Answer) bool { return a.HTTP == http.StatusOK })
	if winner < 0 {
		return fmt.Sprintf("none wins: %s %s", answers[0].Body, answers[1].Body)
	}
	loser := answers[1-winner]
	if loser.HTTP != http.StatusConflict || loser.Error.Code != "already_resolved" ||
		!strings.Contains(loser.Error.Message, decisions[winner]+", at 20") {
		return fmt.Sprintf("the loser gets %d %s", loser.HTTP, loser.Body)
	}
	s.ended(First, run.RunID)
	sent := len(slices.DeleteFunc(s.sent(), func(m Mail) bool { return m.Subject != s.subject(n) }))
	if sent != 1-winner {
		return fmt.Sprintf("%s wins, and %d e-mails are sent", decisions[winner], sent)
	}
	return s.bothOnRecord(run.RunID, decisions[winner], decisions[1-winner])
}

// bothOnRecord looks in the audit for the decision that counted and then the refused one. It returns a description of
// what differs, or "".
func (s *session) bothOnRecord(runID, won, lost string) (odd string) {
	var page struct {
		Entries []struct{ Kind, Decision string }
	}
	s.get(First, "/audit?runId="+runID, &page)
	var told []string
	for _, e := range page.Entries {
		if e.Kind == "decided" || e.Kind == "refused" {
			told = append(told, e.Kind+" "+e.Decision)
		}
	}
	if !slices.Equal(told, []string{"decided " + won, "refused " + lost}) {
		return fmt.Sprintf("the audit contains %q", told)
	}
	return ""
}
