package agent

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
)

// Limits bound what one user may use; 0 means no limit.
type Limits struct {
	RunsPerMinute int // runs, and messages to a page's agent, that begin within any 60 seconds
	CallsPerDay   int // calls of the model in one day (UTC)
	TokensPerDay  int // tokens of the model in one day (UTC), as the service counts them
}

// None reports whether l sets no limit, so that nothing needs to be counted.
func (l Limits) None() bool { return l == Limits{} }

// Spent is a user's recent use. It is part of the user's document, and every commit that changes it requires the
// version that was read, so the limits hold however many functions race.
type Spent struct {
	Begun  []Beginning `json:"begun,omitempty"` // runs of the last minute, oldest first
	Day    string      `json:"day,omitempty"`   // the UTC day of the next two fields
	Calls  int         `json:"calls,omitempty"`
	Tokens int         `json:"tokens,omitempty"`
}

// An Admission is an admitted request to the model that is not a stored run.
type Admission struct {
	Spent  Spent  // the user's use of the model on this day, before the request
	Region Region // the user's: from the request, completed from the stored one
	// Use counts the request's use beyond its first call, which is counted already.
	Use func(ctx context.Context, calls, tokens int) error
}

// A Beginning is a moment at which runs began.
type Beginning struct {
	At int64 `json:"at"` // Unix milliseconds
	N  int   `json:"n"`
}

// minute is the window of Limits.RunsPerMinute. Each beginning has its own entry for limits up to maxBeginnings; above,
// those of one second share an entry, which bounds the document.
const (
	minute        = time.Minute
	maxBeginnings = 60
)

// MayBegin returns nil if the user may begin another run now, and otherwise PolicyError too_many with the time after
// which they may.
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

// MayAskModel returns nil if the user may call the model again today, and otherwise PolicyError budget with the time
// until tomorrow. calls and tokens are used but not yet counted in s.
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

// UntilTomorrow returns the rest of the day (UTC).
func UntilTomorrow(now time.Time) time.Duration {
	return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now)
}

// Begin counts a run that begins at now.
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

// Use adds calls to the model and their tokens to the day of now.
func (s *Spent) Use(now time.Time, calls, tokens int) {
	today := s.on(now)
	s.Day, s.Calls, s.Tokens = now.UTC().Format(time.DateOnly), today.Calls+calls, today.Tokens+tokens
}

// on returns what was used on the day of now.
func (s *Spent) on(now time.Time) Spent {
	if s.Day != now.UTC().Format(time.DateOnly) {
		return Spent{}
	}
	return *s
}
