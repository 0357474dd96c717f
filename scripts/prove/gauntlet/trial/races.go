package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/countersign-run/countersign/shared/testkit"
)

// atOnce calls do n times at one moment, and returns the first error.
func atOnce(n int, do func(i int) error) error {
	begin := make(chan struct{})
	errs := make(chan error, n)
	for i := range n {
		go func() {
			<-begin
			errs <- do(i)
		}()
	}
	close(begin)
	var first error
	for range n {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

func twentyYeses(ctx context.Context, s *session) (string, error) {
	run, card, err := s.ask(ctx, First, 1)
	if err != nil {
		return "", err
	}
	var mu sync.Mutex
	answered := 0
	err = atOnce(20, func(int) error {
		a, err := s.resolve(ctx, First, card, "approve_once")
		mu.Lock()
		defer mu.Unlock()
		if a.HTTP == http.StatusOK && len(a.Actions) == 1 &&
			strings.Contains(string(a.Body), `"decision":"approve_once"`) {
			answered++
		}
		return err
	})
	if err != nil {
		return "", err
	}
	if _, err := s.ended(ctx, First, run.RunID); err != nil {
		return "", err
	}
	mails, err := s.sent(ctx)
	return fmt.Sprintf("%d mail; %d of 20 answered with one outcome", len(mails), answered), err
}

// yesAgainstNo races many times, so that each side has a chance to win.
func yesAgainstNo(ctx context.Context, s *session) (string, error) {
	for n := range 10 {
		if odd, err := s.race(ctx, n); odd != "" || err != nil {
			return odd, err
		}
	}
	return "one wins each time; the loser gets 409 already_resolved with what was decided and when; both are " +
		"in the audit", nil
}

func (s *session) race(ctx context.Context, n int) (odd string, err error) {
	run, card, err := s.ask(ctx, First, n)
	if err != nil {
		return "", err
	}
	decisions := []string{"approve_once", "reject"}
	answers := make([]testkit.Answer, 2)
	err = atOnce(2, func(i int) (err error) {
		answers[i], err = s.resolve(ctx, First, card, decisions[i])
		return err
	})
	if err != nil {
		return "", err
	}
	winner := slices.IndexFunc(answers, func(a testkit.Answer) bool { return a.HTTP == http.StatusOK })
	if winner < 0 {
		return fmt.Sprintf("nobody wins: %s %s", answers[0].Body, answers[1].Body), nil
	}
	loser := answers[1-winner]
	if loser.HTTP != http.StatusConflict || loser.Error.Code != "already_resolved" ||
		!strings.Contains(loser.Error.Message, decisions[winner]+", at 20") {
		return fmt.Sprintf("the loser is told %d %s", loser.HTTP, loser.Body), nil
	}
	if _, err := s.ended(ctx, First, run.RunID); err != nil {
		return "", err
	}
	mails, err := s.sent(ctx)
	if err != nil {
		return "", err
	}
	sent := len(slices.DeleteFunc(mails, func(m Mail) bool { return m.Subject != s.subject(n) }))
	if sent != 1-winner {
		return fmt.Sprintf("%s wins, and %d mails are sent", decisions[winner], sent), nil
	}
	return s.bothOnRecord(ctx, run.RunID, decisions[winner], decisions[1-winner])
}

// bothOnRecord looks in the audit for the decision that counts and the one that was refused, in this order.
func (s *session) bothOnRecord(ctx context.Context, runID, won, lost string) (odd string, err error) {
	a, err := s.call(ctx, First, "GET", "/audit?runId="+runID, "")
	if err != nil {
		return "", err
	}
	var page struct {
		Entries []struct{ Kind, Decision string }
	}
	if err := json.Unmarshal(a.Body, &page); err != nil {
		return "", err
	}
	var got []string
	for _, e := range page.Entries {
		if e.Kind == "decided" || e.Kind == "refused" {
			got = append(got, e.Kind+" "+e.Decision)
		}
	}
	if !slices.Equal(got, []string{"decided " + won, "refused " + lost}) {
		return fmt.Sprintf("the audit holds %q", got), nil
	}
	return "", nil
}
