package plan

import (
	"encoding/json"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// A GrantCall is a call that may rest on a grant.
type GrantCall struct {
	ActionID string
	Tool     string
	Version  string          // of the tool's schema now
	Bound    json.RawMessage // tool.Tool.Bound of its arguments
	Place    tool.Place      // where it would act; zero: nowhere in particular
}

// GrantFor returns the grant of the newest confirmed plan that the call rests on: of its tool in this version, with
// this target byte for byte, in the account that the plan's card showed, still lasting at now, not taken back, and with
// a use left. A call that has begun on a
// grant needs no second use of it.
func (s *Session) GrantFor(c GrantCall, now time.Time) (Grant, bool) {
	elsewhere := s.Confirmed != nil && c.Place != (tool.Place{}) && c.Place != s.Confirmed.Place
	if s.Phase() != Acting || s.Current == nil || elsewhere {
		return Grant{}, false
	}
	key := callKey(c.Tool, c.Version, c.Bound)
	for _, g := range s.Confirmed.Plan.Grants {
		if g.key() == key && !s.revoked[g.ID] && now.Before(g.Until) && usesBut(s, c.ActionID, key) < g.MaxCalls {
			return g, true
		}
	}
	return Grant{}, false
}

// usesBut returns how often the grant was used by others than the action.
func usesBut(s *Session, actionID, key string) int {
	if a := s.acts[actionID]; a != nil && a.uses() && s.keys[actionID] == key {
		return s.uses[key] - 1
	}
	return s.uses[key]
}

// A GrantState is a grant of the confirmed plan and what is left of it.
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
