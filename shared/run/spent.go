package run

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

// UserUsage is a user's recent use. It is part of the user's document, and every commit that changes it requires the
// version that was read, so the limits hold however many functions race.
type UserUsage struct {
	Starts []Starts `json:"begun,omitempty"` // runs of the last minute, oldest first
	Day    string   `json:"day,omitempty"`   // the UTC day of the next two fields
	Calls  int      `json:"calls,omitempty"`
	Tokens int      `json:"tokens,omitempty"`
}

// An Admission is an admitted request to the model that is not a stored run.
type Admission struct {
	Usage  UserUsage // the user's use of the model on this day, before the request
	Region Region    // the user's: from the request, completed from the stored one
	// Use counts the request's use beyond its first call, which is counted already.
	Use func(ctx context.Context, calls, tokens int) error
}

// A Beginning is a moment at which runs began.
type Starts struct {
	At int64 `json:"at"` // Unix milliseconds
	N  int   `json:"n"`
}

// minute is the window of Limits.RunsPerMinute. Each beginning has its own entry for limits up to maxStarts; above,
// those of one second share an entry, which bounds the document.
const (
	minute    = time.Minute
	maxStarts = 60
)

// CheckStart returns nil if the user may begin another run now, and otherwise PolicyError too_many with the time after
// which they may.
func (s *UserUsage) CheckStart(l Limits, now time.Time) error {
	if l.RunsPerMinute <= 0 {
		return nil
	}
	left := l.RunsPerMinute
	for i := len(s.Starts) - 1; i >= 0; i-- {
		ends := time.UnixMilli(s.Starts[i].At).Add(minute)
		if !now.Before(ends) {
			break
		}
		if left -= s.Starts[i].N; left <= 0 {
			return fault.New(fault.Policy, fault.CodeTooMany,
				"That was more than %d requests within a minute. Please wait a moment.", l.RunsPerMinute).
				After(ends.Sub(now))
		}
	}
	return nil
}

// CheckModelBudget returns nil if the user may call the model again today, and otherwise PolicyError budget with the
// time until tomorrow. calls and tokens are used but not yet counted in s.
func (s *UserUsage) CheckModelBudget(l Limits, now time.Time, calls, tokens int) error {
	today := s.on(now)
	switch {
	case l.CallsPerDay > 0 && today.Calls+calls >= l.CallsPerDay:
		return overBudget(now, "The assistant has been asked %d times for you today, which is the limit.",
			l.CallsPerDay)
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

// CountStart counts a run that begins at now.
func (s *UserUsage) CountStart(l Limits, now time.Time) {
	if l.RunsPerMinute <= 0 {
		s.Starts = nil
		return
	}
	for len(s.Starts) > 0 && !now.Before(time.UnixMilli(s.Starts[0].At).Add(minute)) {
		s.Starts = s.Starts[1:]
	}
	at := now.UnixMilli()
	if n := len(s.Starts); n > 0 && l.RunsPerMinute > maxStarts && at-s.Starts[n-1].At < time.Second.Milliseconds() {
		s.Starts[n-1].N++
		return
	}
	s.Starts = append(s.Starts, Starts{at, 1})
}

// CountUse adds calls to the model and their tokens to the day of now.
func (s *UserUsage) CountUse(now time.Time, calls, tokens int) {
	today := s.on(now)
	s.Day, s.Calls, s.Tokens = now.UTC().Format(time.DateOnly), today.Calls+calls, today.Tokens+tokens
}

// on returns what was used on the day of now.
func (s *UserUsage) on(now time.Time) UserUsage {
	if s.Day != now.UTC().Format(time.DateOnly) {
		return UserUsage{}
	}
	return *s
}
