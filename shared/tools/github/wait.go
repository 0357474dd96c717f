package github

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// The times of a wait for checks. The pauses grow with the time that has passed.
const (
	usualWait  = 30  // minutes, if the call sets none
	maxWait    = 360 // minutes; GitHub ends a job after that
	firstPause = 30 * time.Second
	longPause  = 10 * time.Minute
	noChecks   = 5 * time.Minute // a commit without checks after this time gets none
)

// ChecksToWaitFor holds the arguments of waitForChecks.
type ChecksToWaitFor struct {
	OneCommit
	Minutes int `json:"minutes,omitempty" jsonschema:"How long to wait at most; left out: 30."`
}

// ChecksAfterWait is the result of waitForChecks.
type ChecksAfterWait struct {
	Checks
	TimedOut bool `json:"timedOut,omitempty"` // some checks had not ended in time
}

func (h *hub) waitForChecks() *tool.Tool {
	return define(h, tool.Def[ChecksToWaitFor, any]{
		Name: WaitForChecks,
		Description: "Waits until all checks of a commit on GitHub are over or one has failed, and returns them as " +
			ListChecks + " does; null if there is no such commit. The commit of a branch is its newest at that time.",
		Untrusted: true,
		Refine:    inRepository(map[string]int{"ref": 200, "minutes": maxWait}),
		Normalize: func(in ChecksToWaitFor) (ChecksToWaitFor, error) { return in, in.check() },
		Reading:   func(in ChecksToWaitFor, out any) tool.Reading { return readingOf(in.OneCommit, out) },
		Execute:   h.lookAtChecks,
	})
}

// lookAtChecks reads the checks once. If some have not ended, the call is repeated later.
func (h *hub) lookAtChecks(ctx context.Context, c tool.Call, in ChecksToWaitFor) (any, error) {
	waited := h.now().Sub(c.Since)
	left := in.limit() - waited
	again := tool.Later(min(max(waited/2, h.pause), longPause, max(left, 0)), errPending)
	out, err := looked(ctx, h, c, WaitForChecks, in.OneCommit, h.checks)
	switch {
	case tool.IsTransient(err) && left > 0:
		return nil, again
	case err != nil || out == nil:
		return nil, err
	case out.State == stateNone && waited < noChecks, out.State == statePending:
		if left > 0 {
			return nil, again
		}
		return ChecksAfterWait{*out, true}, nil
	}
	return ChecksAfterWait{*out, false}, nil
}

func (in ChecksToWaitFor) limit() time.Duration {
	if in.Minutes == 0 {
		return usualWait * time.Minute
	}
	return time.Duration(in.Minutes) * time.Minute
}

var errPending = fault.New(fault.Tool, "pending", "The checks have not ended.")
