package run

import "time"

// Reminders are a user's settings and state for e-mails about waiting approvals (package reminder).
type Reminders struct {
	To    string    `json:"to,omitempty"`   // the user's address, verified by the issuer of their tokens
	Off   bool      `json:"off,omitempty"`  // the user wants no reminders
	Upto  time.Time `json:"upto,omitzero"`  // when the last mail was made; the e-mail covers every older approval
	Taken time.Time `json:"taken,omitzero"` // until then, one process has reserved the next e-mail
}

// Reminding configures e-mails about waiting approvals. The zero value sends none.
type Reminding struct {
	After time.Duration // how long a decision waits before its user gets an e-mail
	Every time.Duration // minimum time between two e-mails

	// Settled is the minimum age of the approvals that an e-mail covers. A younger approval may not be in the store
	// yet, and the e-mail would count it as covered.
	Settled time.Duration

	Taken time.Duration // how long one process reserves the sending of an e-mail; must exceed the time that this takes
}

// On reports whether users get reminders at all.
func (r Reminding) On() bool { return r.After > 0 }

// At returns when the user gets an e-mail about an approval that was requested at asked. It returns the zero time if an
// e-mail already covers the approval or the user gets no e-mails.
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

// Of reports whether an e-mail that is made now covers the user's approval that was requested at asked.
func (r Reminding) Of(u *User, asked, now time.Time) bool {
	return !r.At(u, asked).IsZero() && !asked.After(now.Add(-r.Settled))
}
