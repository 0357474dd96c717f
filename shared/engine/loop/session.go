package loop

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// Session is the [Input] of a run of an agent that plans.
type Session struct {
	Prompt string
	Files  []attachment.File // types checked by the caller
	// FilesBefore means that the session which this one continues had a file.
	FilesBefore bool
	run.Session
}

func (s Session) check(_ context.Context, _ *unit.Execution, agent *registry.Agent) error {
	if !agent.Plans {
		return fault.Invalid("agent", "the agent %s does not plan", agent.Name)
	}
	return nil
}

func (s Session) needs(ex *unit.Execution, req StartRequest) needs {
	paths := append(ex.LinkedPaths(tool.Scope{UID: req.UID}, req.Agent), uploadPaths(s.Files)...)
	return needs{message: s.Prompt, noDayCap: true, paths: paths}
}

func (s Session) stored(tx *unit.Tx) *run.Input {
	tx.Thread.Files = tx.Thread.Files || s.FilesBefore
	return seeThread(tx, &run.Input{Prompt: s.Prompt, Session: &s.Session, FilesBefore: tx.Thread.Files,
		FilesOf: tx.Run.ID}) // a refinement may have the first file
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
