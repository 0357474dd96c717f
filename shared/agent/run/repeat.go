package run

import (
	"slices"
	"time"
)

// An Allowed is an effect that a user allowed recently, by approval or in advance. It is in the user's document, so
// another run of the same conversation can recognise an equal call.
type Allowed struct {
	Key      string    `json:"key"` // digest of the conversation and the arguments
	ActionID string    `json:"actionId"`
	At       time.Time `json:"at"`
}

// NewAllowed returns the entry for an action that is allowed at now. argsHash is the hash of its arguments
// ([ArgsHash]).
func NewAllowed(threadID, argsHash, actionID string, now time.Time) Allowed {
	return Allowed{allowedKey(threadID, argsHash), actionID, now}
}

func allowedKey(threadID, argsHash string) string { return digest("allowed", threadID, argsHash)[:22] }

// Limits for the allowed effects in a user's document.
const (
	allowedFor = time.Hour
	maxAllowed = 20
)

// NoteAllowed adds e and drops effects older than an hour. It keeps at most 20.
func (u *User) NoteAllowed(e Allowed) {
	u.ForgetAllowed(e.ActionID)
	kept := slices.DeleteFunc(slices.Clone(u.Recent), func(old Allowed) bool { return !old.counts(e.At) })
	u.Recent = append(kept, e)
	u.Recent = u.Recent[max(0, len(u.Recent)-maxAllowed):]
}

// ForgetAllowed drops the entry of an action that had no effect, and reports whether there was one.
func (u *User) ForgetAllowed(actionID string) bool {
	kept := slices.DeleteFunc(slices.Clone(u.Recent), func(e Allowed) bool { return e.ActionID == actionID })
	had := len(kept) < len(u.Recent)
	u.Recent = kept
	return had
}

// AllowedIn returns the newest effect with this hash that the user allowed in the conversation within the last hour, in
// a run other than that of s.
func (u *User) AllowedIn(threadID, argsHash string, s *State, now time.Time) (newest Allowed, found bool) {
	key := allowedKey(threadID, argsHash)
	for _, e := range u.Recent {
		if e.Key == key && s.Action(e.ActionID) == nil && e.counts(now) {
			newest, found = e, true
		}
	}
	return newest, found
}

func (e Allowed) counts(now time.Time) bool { return now.Sub(e.At) < allowedFor }

// Twin returns another effect of the run with the same hash, or nil. It prefers one that was done or may have been.
// Otherwise it returns an effect that the run proposed before the action and that is waiting or allowed. A new attempt
// at a call is not a twin of the earlier attempt.
func Twin(s *State, actionID, hash string) (twin *Action) {
	own, before := s.Action(actionID), true
	for _, a := range s.Actions {
		if a.ID == actionID {
			before = false
			continue
		}
		if !a.SideEffect || a.ArgsHash != hash || own != nil && a.Turn == own.Turn && a.Index == own.Index {
			continue
		}
		switch {
		case a.Status == ActionCompleted, a.Status == ActionExecuting, a.Execution == UnknownState:
			twin = a
		case before && !a.Terminal() && twin == nil:
			twin = a
		}
	}
	return twin
}
