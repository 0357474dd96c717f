package loop

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// Compress is the [Input] of a run that only compresses its thread. The thread gets no message.
type Compress struct {
	Tools []string // the agent's tools that the next run's model may call, whose declarations count; nil: all
}

func (c Compress) check(_ context.Context, _ *unit.Execution, agent *registry.Agent) error {
	if err := checkTerminal(agent, ""); err != nil {
		return err
	}
	return checkNoSession(agent)
}

func (c Compress) needs(ex *unit.Execution, req StartRequest) needs {
	return needs{paths: ex.LinkedPaths(tool.Scope{UID: req.UID}, req.Agent)}
}

func (c Compress) stored(tx *unit.Tx) *run.Input {
	return seeThread(tx, &run.Input{Compress: true, Tools: c.Tools})
}

func (c Compress) begin(_ context.Context, tx *unit.Tx, _ approval.Places) error {
	leaveEarlier(tx)
	return nil
}

// compressByHand compresses the thread of a run that does nothing else, whatever its size, and ends the run.
func compressByHand(ctx context.Context, ex *unit.Execution, req model.Request) error {
	if len(ex.State.Compressions) == 0 {
		made, err := compress(ctx, ex, promptTokens(ex.State, req), 0)
		if err != nil {
			return err
		}
		if made {
			return nil
		}
	}
	return ex.Transition(ctx, func(tx *unit.Tx) error {
		if st, _ := tx.Next(); st != run.StepCallModel || tx.Run.Lease.Owner != ex.Owner {
			return nil
		}
		end := &run.End{Status: run.Completed, Summary: "There was nothing to compress."}
		if n := len(tx.State.Compressions); n > 0 {
			end.Summary = "The conversation was compressed."
			if code := tx.State.Compressions[n-1].Code; code != "" {
				end = run.FailedEnd(fault.New(fault.Model, code, "The conversation could not be compressed."))
			}
		}
		return recordEnd(tx, end, 0)
	})
}
