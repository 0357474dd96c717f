package run

import (
	"context"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// Limits bound the usage of one user. Zero means no limit.
type Limits struct {
	RunsPerMinute int // runs, and messages to a page's agent, that begin in any 60 seconds
	CallsPerDay   int // model calls in one day (UTC)
	TokensPerDay  int // model tokens in one day (UTC), as the service counts them
}

// None reports whether l sets no limit. Nothing needs to be counted then.
func (l Limits) None() bool { return l == Limits{} }

// UserUsage is a user's recent usage. It is part of the user's document. Every commit that changes it requires the
// version that was read, so the limits hold however many functions run at once.
type UserUsage struct {
	Starts []Starts `json:"begun,omitempty"` // runs of the last minute, oldest first
	Day    string   `json:"day,omitempty"`   // the UTC day of Calls and Tokens
	Calls  int      `json:"calls,omitempty"`
	Tokens int      `json:"tokens,omitempty"`
}

// An Admission is an admitted model request that does not belong to a stored run.
type Admission struct {
	Usage  UserUsage // the user's usage on this day, before the request
	Locale Locale    // from the request; missing fields come from the stored locale
	// Use counts the usage beyond the first call, which has been counted already.
	Use func(ctx context.Context, calls, tokens int) error
}

// Starts counts the runs that began at one moment.
type Starts struct {
	At int64 `json:"at"` // Unix milliseconds
	N  int   `json:"n"`
}

// minute is the window of Limits.RunsPerMinute. For limits up to maxStarts, each moment has its own entry. For higher
// limits, the runs of one second share an entry, which bounds the document's size.
const (
	minute    = time.Minute
	maxStarts = 60
)

// CheckStart returns nil if the user can start another run now. Otherwise it returns PolicyError too_many with the time
// to wait.
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

// CheckModelBudget returns nil if the user can call the model again today. Otherwise it returns PolicyError budget with
// the time until tomorrow (UTC). calls and tokens are used but not yet counted in s.
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
	return fault.New(fault.Policy, fault.CodeBudget, format+" %s", limit, Tomorrow(now)).After(UntilTomorrow(now))
}

// Tomorrow returns a sentence that says when a daily limit allows more.
func Tomorrow(now time.Time) string {
	return moreFrom + now.Add(UntilTomorrow(now)).UTC().Format(dayAndTime) + "."
}

const (
	moreFrom   = "More is possible from "
	dayAndTime = "2 January, 15:04 MST"
)

// tomorrowMoments returns the times of the sentences of [Tomorrow] in the text. A sentence has no year; of all years,
// it means the one that makes the time closest to near. The moments have no time zone, so clients show them by the
// reader's clock.
func tomorrowMoments(text string, near time.Time) (all []tool.Moment) {
	for _, rest, ok := strings.Cut(text, moreFrom); ok; _, rest, ok = strings.Cut(rest, moreFrom) {
		said, _, _ := strings.Cut(rest, ".")
		at, err := time.Parse(dayAndTime, said)
		if err != nil {
			continue
		}
		closest := at.AddDate(near.UTC().Year()-at.Year(), 0, 0)
		for _, years := range []int{-1, 1} {
			if other := closest.AddDate(years, 0, 0); other.Sub(near).Abs() < closest.Sub(near).Abs() {
				closest = other
			}
		}
		all = append(all, tool.Moment{Text: said, At: closest.Format(time.RFC3339)})
	}
	return all
}

// UntilTomorrow returns the time until the next day (UTC).
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

// CountUse adds model calls and their tokens to the day of now.
func (s *UserUsage) CountUse(now time.Time, calls, tokens int) {
	today := s.on(now)
	s.Day, s.Calls, s.Tokens = now.UTC().Format(time.DateOnly), today.Calls+calls, today.Tokens+tokens
}

// on returns the usage on the day of now.
func (s *UserUsage) on(now time.Time) UserUsage {
	if s.Day != now.UTC().Format(time.DateOnly) {
		return UserUsage{}
	}
	return *s
}
