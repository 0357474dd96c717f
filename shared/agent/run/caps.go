package run

import (
	"cmp"
	"time"
)

// An ApprovalCount counts the approvals that one agent has requested from a user. The JSON names are older than the
// separate counts of agents.
type ApprovalCount struct {
	Open  int    `json:"open"` // waiting approvals, including reviews
	Day   string `json:"day,omitempty"`
	Asked int    `json:"asked"` // approvals requested on Day (UTC); with Limits.CountAllowed, all effects
}

// AskedOn returns the number of approvals requested on the day (UTC) of now.
func (c ApprovalCount) AskedOn(now time.Time) int {
	if c.Day != now.UTC().Format(time.DateOnly) {
		return 0
	}
	return c.Asked
}

// CountOf returns the count of the named agent. Approvals from before agents were counted separately belong to the
// assistant.
func (u *User) CountOf(agent string) ApprovalCount {
	if cmp.Or(agent, Assistant) == Assistant {
		return u.ApprovalCount
	}
	return u.Others[agent]
}

// OpenApprovals returns the number of the user's waiting approvals, across all agents.
func (u *User) OpenApprovals() int {
	n := u.Open
	for _, c := range u.Others {
		n += c.Open
	}
	return n
}

// CountedOn returns how many effects of the action were counted on the day (UTC) of now, when its approval was
// requested.
func (a *Action) CountedOn(now time.Time) int {
	if a.countedAt.UTC().Format(time.DateOnly) != now.UTC().Format(time.DateOnly) {
		return 0
	}
	return a.counted
}

// CountApproval counts one more open approval of the agent, and n for the day: 0 for a plan that the user requested,
// otherwise 1, or the effects of the call with registry.Limits.CountAllowed.
func (u *User) CountApproval(agent string, n int, now time.Time) {
	c := u.CountOf(agent)
	c.Open++
	u.setCount(agent, c, now)
	u.CountEffects(agent, n, now)
}

// CountEffects counts n more effects of the agent for the day.
func (u *User) CountEffects(agent string, n int, now time.Time) {
	if n == 0 {
		return
	}
	c := u.CountOf(agent)
	u.setCount(agent, ApprovalCount{Open: c.Open, Day: now.UTC().Format(time.DateOnly), Asked: c.AskedOn(now) + n}, now)
}

// CloseApproval counts down the open approvals of an agent. agent is the name in the approval; an approval without one
// counts for the assistant.
func (u *User) CloseApproval(agent string, now time.Time) {
	c := u.CountOf(agent)
	c.Open = max(0, c.Open-1)
	u.setCount(agent, c, now)
}

// setCount stores the agent's count. It drops counts with no open approval and none requested today.
func (u *User) setCount(agent string, c ApprovalCount, now time.Time) {
	others := map[string]ApprovalCount{} // a new map, because the commit of this copy may fail
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
