package countersign

import (
	"time"
)

// SessionContext is what a tool and Options.InstructionsFunc know of the session that they are called for. It is made
// for each call.
type SessionContext struct {
	SessionID string
	RunID     string // empty for InstructionsFunc, which is asked before the run begins
	ActionID  string // the call's id, the same across crashes: an effect's idempotency key; empty for InstructionsFunc
	User      string // whom the agent acts for
	Dir       string // Options.Dir, absolute
	Time      time.Time
	Agent     *Agent // as this user

}
