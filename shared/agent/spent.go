package agent

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
)

// Limits are what one user may use; 0 is no limit.
type Limits struct {
	RunsPerMinute int // runs, and messages to a page's agent, that begin within any 60 seconds
	CallsPerDay   int // calls of the model in one day (UTC)
	TokensPerDay  int // tokens of the model in one day (UTC), as the service counts them
}

// None reports whether nothing is limited, so that nothing need be counted.
func (l Limits) None() bool { return l == Limits{} }

// Spent is what a user has used of late. It lives in the user's document, and every commit that moves it holds that
// document's version, so the limits hold however many functions race.
type Spent struct {
	Begun  []Beginning `json:"begun,omitempty"` // of the last minute, oldest first
	Day    string      `json:"day,omitempty"`   // of the two that follow, in UTC
	Calls  int         `json:"calls,omitempty"`
	Tokens int         `json:"tokens,omitempty"`
}

// Admission is a request to the model that was let in and is no run of the store.
type Admission struct {
	Spent  Spent  // what its user had used of the model on this day before
	Region Region // of its user: what the request told of it, and for the rest what was kept
	// Use counts what the request used beyond its first call, which is counted.
	Use func(ctx context.Context, calls, tokens int) error
}

// Beginning is a moment at which runs began.
type Beginning struct {
	At int64 `json:"at"` // Unix milliseconds
	N  int   `json:"n"`
}

// minute is the window of Limits.RunsPerMinute. Up to maxBeginnings, each beginning is remembered by itself; a limit
// above that has those of one second share an entry, which bounds the document.
const (
	minute        = time.Minute
	maxBeginnings = 60
)

// MayBegin is the answer to a user who wants to begin another run: PolicyError too_many, with the time after which one
// fits.
func (s *Spent) MayBegin(l Limits, now time.Time) error {
	if l.RunsPerMinute <= 0 {
		return nil
	}
	left := l.RunsPerMinute
	for i := len(s.Begun) - 1; i >= 0; i-- {
		ends := time.UnixMilli(s.Begun[i].At).Add(minute)
		if !now.Before(ends) {
			break
		}
		if left -= s.Begun[i].N; left <= 0 {
			return fault.New(fault.Policy, fault.CodeTooMany, "That was more than %d requests within a minute. Please wait a moment.", l.RunsPerMinute).
				After(ends.Sub(now))
		}
	}
	return nil
}

// MayAskModel is the answer to a user whose day's share of the model is used up: PolicyError budget, until tomorrow.
// calls and tokens are what was used and is not yet counted here.
func (s *Spent) MayAskModel(l Limits, now time.Time, calls, tokens int) error {
	today := s.on(now)
	switch {
	case l.CallsPerDay > 0 && today.Calls+calls >= l.CallsPerDay:
		return overBudget(now, "The assistant has been asked %d times for you today, which is the limit.", l.CallsPerDay)
	case l.TokensPerDay > 0 && today.Tokens+tokens >= l.TokensPerDay:
		return overBudget(now, "The assistant has used %d tokens for you today, which is the limit.", l.TokensPerDay)
	}
	return nil
}

func overBudget(now time.Time, format string, limit int) error {
	return fault.New(fault.Policy, fault.CodeBudget, format, limit).After(UntilTomorrow(now))
}

// UntilTomorrow is the rest of the day (UTC).
func UntilTomorrow(now time.Time) time.Duration {
	return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now)
}

// Begin counts a beginning.
func (s *Spent) Begin(l Limits, now time.Time) {
	if l.RunsPerMinute <= 0 {
		s.Begun = nil
		return
	}
	for len(s.Begun) > 0 && !now.Before(time.UnixMilli(s.Begun[0].At).Add(minute)) {
		s.Begun = s.Begun[1:]
	}
	at := now.UnixMilli()
	if n := len(s.Begun); n > 0 && l.RunsPerMinute > maxBeginnings && at-s.Begun[n-1].At < time.Second.Milliseconds() {
		s.Begun[n-1].N++
		return
	}
	s.Begun = append(s.Begun, Beginning{at, 1})
}

// Use counts calls of the model and their tokens to the day of now.
func (s *Spent) Use(now time.Time, calls, tokens int) {
	today := s.on(now)
	s.Day, s.Calls, s.Tokens = now.UTC().Format(time.DateOnly), today.Calls+calls, today.Tokens+tokens
}

// on is what was used on the day of now.
func (s *Spent) on(now time.Time) Spent {
	if s.Day != now.UTC().Format(time.DateOnly) {
		return Spent{}
	}
	return *s
}
