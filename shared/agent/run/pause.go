package run

import "time"

// Held reports whether the undo window of the approved call is open. Until it closes, the call does not begin and the
// user can revoke the approval.
func (a *Action) Held(now time.Time) bool { return a.Runnable() && now.Before(a.HeldUntil) }

// Postponed reports whether the call begins again later, because its tool or its service asked for that.
func (a *Action) Postponed(now time.Time) bool { return a.Runnable() && now.Before(a.NotBefore) }

// HeldUntil returns the end of the undo window that closes first among the newest turn's calls, or zero if none is
// open.
func HeldUntil(s *State, now time.Time) time.Time {
	return firstPause(s, func(a *Action) (time.Time, bool) { return a.HeldUntil, a.Held(now) })
}

// PostponedUntil returns when the first postponed call of the newest turn begins again or the model is asked again, or
// zero if neither is postponed.
func PostponedUntil(s *State, now time.Time) time.Time {
	if s.End == nil && now.Before(s.Waits.Until) {
		return s.Waits.Until
	}
	return firstPause(s, func(a *Action) (time.Time, bool) { return a.NotBefore, a.Postponed(now) })
}

// firstPause returns the end of the pause that ends first among the newest turn's calls, or zero if none pauses.
func firstPause(s *State, of func(*Action) (end time.Time, pauses bool)) (first time.Time) {
	if s.End != nil {
		return first
	}
	for _, a := range s.Current() {
		if end, pauses := of(a); pauses && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	return first
}
