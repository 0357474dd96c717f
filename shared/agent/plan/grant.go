package plan

import (
	"encoding/json"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// A GrantCall is a call that a grant may allow.
type GrantCall struct {
	ActionID string
	Tool     string
	Version  string          // current version of the tool's schema
	Pinned   json.RawMessage // pinned arguments (tool.Tool.Pinned)
	Place    tool.Place      // the account or host that the call would act on; zero: none
}

// GrantFor returns the grant of the newest confirmed plan that allows the call. The grant must be for this version of
// the tool and have exactly this target. The call must act on the account that the plan's card showed. At now, the
// grant must be neither expired nor revoked, and have a use left. A call that has already started under the grant needs
// no second use.
func (s *Session) GrantFor(c GrantCall, now time.Time) (Grant, bool) {
	elsewhere := s.Confirmed != nil && c.Place != (tool.Place{}) && c.Place != s.Confirmed.Place
	if s.Phase() != Acting || s.Current == nil || elsewhere {
		return Grant{}, false
	}
	key := callKey(c.Tool, c.Version, c.Pinned)
	for _, g := range s.Confirmed.Plan.Grants {
		if g.key() == key && !s.revoked[g.ID] && now.Before(g.Until) && usesBut(s, c.ActionID, key) < g.MaxCalls {
			return g, true
		}
	}
	return Grant{}, false
}

// usesBut returns the number of uses of the grant by other actions.
func usesBut(s *Session, actionID, key string) int {
	if a := s.acts[actionID]; a != nil && a.uses() && s.keys[actionID] == key {
		return s.uses[key] - 1
	}
	return s.uses[key]
}

// usesBefore returns the number of uses of the grant before the current task.
func (s *Session) usesBefore(key string) int {
	n := s.uses[key]
	for id, a := range s.acts {
		if s.Current != nil && s.taskOf[id] == s.Current && s.keys[id] == key && a.uses() {
			n--
		}
	}
	return n
}

// A GrantState is a grant of the confirmed plan, with its use count.
type GrantState struct {
	Grant
	Used    int
	Revoked bool
}

// Grants returns the grants of the newest confirmed plan.
func (s *Session) Grants() []GrantState {
	if s.Confirmed == nil {
		return nil
	}
	var out []GrantState
	for _, g := range s.Confirmed.Plan.Grants {
		out = append(out, GrantState{g, s.uses[g.key()], s.revoked[g.ID]})
	}
	return out
}
