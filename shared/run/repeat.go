package run

import (
	"slices"
	"time"
)

// An Allowed is an effect that a user allowed a short while ago, by a yes or in advance. The user's document keeps it,
// so that another run of the same conversation recognises an equal call.
type Allowed struct {
	Key      string    `json:"key"` // of the conversation and the arguments
	ActionID string    `json:"actionId"`
	At       time.Time `json:"at"`
}

// NewAllowed returns what is kept of an action that is allowed now, with arguments of this hash (ArgsHash).
func NewAllowed(threadID, argsHash, actionID string, now time.Time) Allowed {
	return Allowed{allowedKey(threadID, argsHash), actionID, now}
}

func allowedKey(threadID, argsHash string) string { return digest("allowed", threadID, argsHash)[:22] }

// The bounds of what a user's document keeps of allowed effects.
const (
	allowedFor = time.Hour
	maxAllowed = 20
)

// NoteAllowed keeps an effect that is allowed now, and drops those that are older than an hour.
func (u *User) NoteAllowed(e Allowed) {
	u.ForgetAllowed(e.ActionID)
	kept := slices.DeleteFunc(slices.Clone(u.Recent), func(old Allowed) bool { return !old.counts(e.At) })
	u.Recent = append(kept, e)
	u.Recent = u.Recent[max(0, len(u.Recent)-maxAllowed):]
}

// ForgetAllowed drops the effect of the action, which had none, and reports whether it was kept.
func (u *User) ForgetAllowed(actionID string) bool {
	kept := slices.DeleteFunc(slices.Clone(u.Recent), func(e Allowed) bool { return e.ActionID == actionID })
	had := len(kept) < len(u.Recent)
	u.Recent = kept
	return had
}

// AllowedIn returns the newest effect with the hash of its arguments that the user allowed in the conversation within
// the last hour, in another run than that of the state.
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

// Twin returns an effect of the run with the hash: one that was done, or may have been, or else one that the run
// proposed before the action and that still waits or is allowed. It is nil where there is none. An attempt that
// replaces another one is no twin of it.
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
