package loop

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// Session is the [Input] of a run of an agent that plans.
type Session struct {
	Prompt string
	run.Session
}

func (s Session) check(_ context.Context, _ *unit.Execution, agent *registry.Agent) error {
	if !agent.Plans {
		return fault.Invalid("agent", "the agent %s does not plan", agent.Name)
	}
	return nil
}

func (s Session) needs(ex *unit.Execution, req StartRequest) needs {
	return needs{message: s.Prompt, noDayCap: true, paths: ex.LinkedPaths(tool.Scope{UID: req.UID}, req.Agent)}
}

func (s Session) stored(tx *unit.Tx) *run.Input {
	return seeThread(tx, &run.Input{Prompt: s.Prompt, Session: &s.Session})
}

// begin lists the session with its user. A session that continues an earlier one proposes the unfinished tasks at once.
func (s Session) begin(ctx context.Context, tx *unit.Tx, _ approval.Places) error {
	leaveEarlier(tx)
	tx.Run.Deadline = s.Deadline
	if err := tx.UpdateUser(func(u *run.User) { u.AddSession(tx.Ex.ID) }); err != nil {
		return err
	}
	if s.Unfinished == nil {
		return nil
	}
	if err := tx.SetStatus(run.Planning); err != nil {
		return err
	}
	return proposePlan(ctx, tx, *s.Unfinished)
}
