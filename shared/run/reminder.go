package run

import "time"

// Reminders are the mails that tell a user what has waited for a while (package reminder).
type Reminders struct {
	To    string    `json:"to,omitempty"`   // their address, for which the issuer of their tokens vouches
	Off   bool      `json:"off,omitempty"`  // they want none
	Upto  time.Time `json:"upto,omitzero"`  // when the last one was made: what was asked before is told
	Taken time.Time `json:"taken,omitzero"` // until then one process sends the next one, and no other
}

// Reminding says when users are mailed of what waits. The zero value: never.
type Reminding struct {
	After time.Duration // for so long a decision waits before its user is mailed
	Every time.Duration // at most one mail in

	// Settled is how old an approval is before a mail tells of it: one that is younger may still be on its way into the
	// store, and would count as told.
	Settled time.Duration

	Taken time.Duration // for so long one process sends a mail, and no other: longer than that may take
}

// On reports whether users are mailed at all.
func (r Reminding) On() bool { return r.After > 0 }

// At returns when the user is to be mailed of what was asked at the time; zero: not any more, or not at all.
func (r Reminding) At(u *User, asked time.Time) time.Time {
	m := u.Reminders
	if m.To == "" || m.Off || u.Disabled || u.Deleting || !asked.After(m.Upto.Add(-r.Settled)) {
		return time.Time{}
	}
	at := asked.Add(r.After)
	if next := m.Upto.Add(r.Every); next.After(at) {
		return next
	}
	return at
}

// Of reports whether a mail to the user that is made now tells of what was asked at the time.
func (r Reminding) Of(u *User, asked, now time.Time) bool {
	return !r.At(u, asked).IsZero() && !asked.After(now.Add(-r.Settled))
}
