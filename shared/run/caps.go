package run

import (
	"cmp"
	"time"
)

// An ApprovalCount counts the approvals that one agent asked a user for. Its JSON fields are those that a user's
// document had when all agents were counted together.
type ApprovalCount struct {
	Open  int    `json:"open"` // waiting approvals, including reviews
	Day   string `json:"day,omitempty"`
	Asked int    `json:"asked"` // approvals requested on Day (UTC), and with Limits.CountAllowed all effects
}

// AskedOn returns the number of approvals requested on the day of now.
func (c ApprovalCount) AskedOn(now time.Time) int {
	if c.Day != now.UTC().Format(time.DateOnly) {
		return 0
	}
	return c.Asked
}

// CountOf returns what the agent with the name has asked the user for. What was counted before agents were told apart
// is the assistant's.
func (u *User) CountOf(agent string) ApprovalCount {
	if cmp.Or(agent, Assistant) == Assistant {
		return u.ApprovalCount
	}
	return u.Others[agent]
}

// OpenApprovals returns the number of the user's waiting approvals, whichever agent asked for them.
func (u *User) OpenApprovals() int {
	n := u.Open
	for _, c := range u.Others {
		n += c.Open
	}
	return n
}

// CountApproval counts one more approval that the agent requested.
func (u *User) CountApproval(agent string, now time.Time) {
	c := u.CountOf(agent)
	u.setCount(agent, ApprovalCount{Open: c.Open + 1, Day: now.UTC().Format(time.DateOnly), Asked: c.AskedOn(now) + 1},
		now)
}

// CountAllowed counts one more effect of the agent that nobody was asked about (agents.Limits.CountAllowed).
func (u *User) CountAllowed(agent string, now time.Time) {
	c := u.CountOf(agent)
	u.setCount(agent, ApprovalCount{Open: c.Open, Day: now.UTC().Format(time.DateOnly), Asked: c.AskedOn(now) + 1}, now)
}

// CloseApproval counts out an approval that no longer waits. The agent is the one that the approval names; one that
// names none was counted before agents were told apart.
func (u *User) CloseApproval(agent string, now time.Time) {
	c := u.CountOf(agent)
	c.Open = max(0, c.Open-1)
	u.setCount(agent, c, now)
}

// setCount keeps the agent's count, and no count that says nothing any more: that of an agent of which nothing waits
// and that has asked for nothing today.
func (u *User) setCount(agent string, c ApprovalCount, now time.Time) {
	others := map[string]ApprovalCount{} // and not the map of a copy whose commit may fail
	for name, other := range u.Others {
		others[name] = other
	}
	if cmp.Or(agent, Assistant) == Assistant {
		u.ApprovalCount = c
	} else {
		others[agent] = c
	}
	for name, other := range others {
		if other.Open == 0 && other.AskedOn(now) == 0 {
			delete(others, name)
		}
	}
	u.Others = others
}
