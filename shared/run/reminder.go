package run

import "time"

// Reminders are the mails that tell a user what has waited for a while (package reminder).
type Reminders struct {
	To    string    `json:"to,omitempty"`   // their address, for which the issuer of their tokens vouches
	Off   bool      `json:"off,omitempty"`  // they want none
	Upto  time.Time `json:"upto,omitzero"`  // when the last one was made: what was asked before is told
	Taken time.Time `json:"taken,omitzero"` // until then one process sends the next one, and no other
}

const (
	RemindAfter = 5 * time.Minute // for so long a decision waits before its user is mailed
	remindEvery = time.Hour       // at most one mail in
)

// remindSettled is how old an approval is before a mail tells of it: one that is younger may still be on its way into
// the store, and would count as told.
const remindSettled = time.Minute

// RemindAt returns when the user is to be mailed of what was asked at the time; zero: not any more, or not at all.
func (u *User) RemindAt(asked time.Time) time.Time {
	m := u.Reminders
	if m.To == "" || m.Off || u.Disabled || u.Deleting || !asked.After(m.Upto.Add(-remindSettled)) {
		return time.Time{}
	}
	at := asked.Add(RemindAfter)
	if next := m.Upto.Add(remindEvery); next.After(at) {
		return next
	}
	return at
}

// RemindOf reports whether a mail that is made now tells of what was asked at the time.
func (u *User) RemindOf(asked, now time.Time) bool {
	return !u.RemindAt(asked).IsZero() && !asked.After(now.Add(-remindSettled))
}
