package effect

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/observe"
	"github.com/countersign-run/countersign/shared/engine/quota"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// maxCallTries is the number of times that one execution calls a provider for a call that provably did not happen.
const maxCallTries = 3

// timeoutOf returns the maximum duration of the call.
func timeoutOf(ex *unit.Execution, id string) time.Duration {
	a := ex.State.Action(id)
	return ex.Limits().OfCall(ex.Toolbox.Tools[a.Tool], a.Args)
}

// checkUnchanged checks that the stored arguments and the place have not changed since the call was validated. It
// returns the call to carry out, which is in another place if an earlier call of the turn moved it there. A call that
// was approved before a release with another version of its tool is asked about again (tool.AskedAnew). After
// errUnread, the caller records nothing.
func checkUnchanged(ctx context.Context, ex *unit.Execution, a *run.Action, t *tool.Tool) (*run.Action, error) {
	if run.ArgsHash(ex.Run.UID, t.Spec, a.Place, a.Args) != a.ArgsHash {
		return nil, changedSince(ctx, ex, a, t)
	}
	in, err := t.Place(ex.Linked(ctx, t), ex.Run.Scope())
	if err != nil {
		return nil, err
	}
	if in != a.Place && t.Moves && a.Runnable() && a.Decision == "" && !a.UserInitiated {
		moved := *a // no user saw its place; the policy is evaluated there, with the intent
		moved.Place, moved.ArgsHash = in, run.ArgsHash(ex.Run.UID, t.Spec, in, a.Args)
		return &moved, nil
	}
	return a, tool.SamePlace(a.Place, in)
}

// changedSince returns why a call is not executed whose hash is not the one that was approved.
func changedSince(ctx context.Context, ex *unit.Execution, a *run.Action, t *tool.Tool) error {
	if t.Source != "" {
		return fault.New(fault.Policy, fault.CodeStaleView,
			"The description of this tool has changed since the request, so this was not done. Please ask for it "+
				"again.")
	}
	switch earlier, err := ofEarlierTool(ctx, ex, a, t); {
	case err != nil:
		return errUnread{err}
	case earlier:
		return tool.AskAnew(a.Args, fault.New(fault.Policy, fault.CodeStaleView,
			"The tool has changed since this was approved, so it was not done. Please review it again."))
	}
	return fault.New(fault.Policy, fault.CodeIntegrity,
		"The stored action does not match what was approved, so it was not done.")
}

// errUnread is an error of the store, after which a call cannot be judged yet.
type errUnread struct{ error }

func (e errUnread) Unwrap() error { return e.error }

// ofEarlierTool reports whether an approved call is as it was approved, but with another version of its tool.
func ofEarlierTool(ctx context.Context, ex *unit.Execution, a *run.Action, t *tool.Tool) (bool, error) {
	if a.ApprovalID == "" {
		return false, nil
	}
	var ap run.Approval
	d, err := document.Get(ctx, ex.Store, document.ApprovalPath(a.ApprovalID), &ap)
	return err == nil && d.Exists() && ap.ActionID == a.ID && ap.ToolVersion != t.Version() &&
		run.ArgsHashOf(ex.Run.UID, a.Tool, ap.ToolVersion, a.Place, a.Args) == a.ArgsHash, err
}

// readFor returns the context for one attempt to call a provider. The first attempt uses the documents that the
// execution has read. Later attempts read the linked accounts again.
func readFor(ctx context.Context, ex *unit.Execution, t *tool.Tool, try int) context.Context {
	if try > 1 {
		return ctx
	}
	return ex.Linked(ctx, t)
}

func toolCall(ex *unit.Execution, a *run.Action, handle string) tool.Call {
	c := ex.Run.ToolCall(a.ID, a.Args, a.Place)
	c.Since, c.After = a.PlannedAt, a.After
	c.Handle, c.Approved, c.Always = handle, a.Decision != "", a.Decision == run.ApproveAlwaysCommand
	c.Standing = a.Decision == "" && a.Rule == policy.RuleCommandAllowed
	return c
}

// prepare returns the handle that the tool prepares. No effect has taken place, whatever the error.
func prepare(ctx context.Context, ex *unit.Execution, t *tool.Tool, a *run.Action) (handle string, err error) {
	ctx, beat := ex.Heartbeat(ctx, ex.Limits().OfTool(t), true)
	defer beat.Release()
	for try := 1; ; try++ {
		handle, err = t.Prepare(readFor(ctx, ex, t, try), toolCall(ex, a, ""))
		ex.LogPanic(ctx, a.ID, err)
		if err == nil || !tool.IsTransient(err) || try == maxCallTries {
			return handle, err
		}
		switch waited := backOff(ctx, ex, try, err); {
		case errors.Is(waited, errLongWait):
			return "", err
		case waited != nil:
			return "", waited
		}
	}
}

// longestWait limits the wait before another attempt, because the run occupies a process during the wait.
const longestWait = 4 * time.Second

// nextCall returns how long a call waits whose service asked for a longer wait than longestWait, and whether it waits
// at all: nothing has happened yet, and no client waits for the answer. A reading call waits as long as a run waits for
// a model; an approved effect waits until its approval would have ended. An effect that no user approved does not wait,
// because its permission may not last.
func nextCall(ex *unit.Execution, a *run.Action, failure error) (wait time.Duration, waits bool) {
	wait = fault.As(failure).RetryAfter
	if !tool.IsTransient(failure) || wait <= longestWait || !canWait(ex, a) {
		return 0, false
	}
	at := ex.Now().Add(wait)
	end := a.PlannedAt.Add(ex.ModelPatience)
	if a.SideEffect {
		end = a.ExpiresAt
	}
	return wait, at.Before(end) && at.Before(ex.Run.Deadline)
}

// canWait reports whether the call can be made later: no client waits for it, and its permission lasts.
func canWait(ex *unit.Execution, a *run.Action) bool {
	return !a.UserInitiated && !ex.Agents.Get(ex.Run.Agent).Page && (!a.SideEffect || a.Decision != "")
}

// takeQuota takes the call's part of the quota that its service gives the whole project. If the quota is used up and
// the call can wait, the call is postponed until the user's turn. Any other call is made nevertheless: the service
// itself decides.
func takeQuota(ctx context.Context, ex *unit.Execution, t *tool.Tool, a *run.Action) (postponed bool, err error) {
	budget := ex.Services[t.Quota.Service]
	if budget == nil {
		return false, nil
	}
	err = budget.Take(ctx, quota.Call{Model: t.Quota.Service, UID: ex.Run.UID, Tokens: t.Quota.Units,
		Waited: !a.NotBefore.IsZero(), Holds: true, Books: canWait(ex, a)})
	if !errors.Is(err, quota.ErrUsedUp) {
		return false, ctx.Err()
	}
	failure := tool.Transient(fault.New(fault.Tool, "provider_limited", "The project's quota of %s is used up for now.",
		t.Quota.Service).After(fault.As(err).RetryAfter).Because(err))
	wait, waits := nextCall(ex, a, failure)
	if !waits {
		return false, nil
	}
	return true, postponeCall(ctx, ex, a, wait, run.WaitsForQuota, failure)
}

// postponeCall records that a call is made again later, because its service refuses it for now.
func postponeCall(ctx context.Context, ex *unit.Execution, a *run.Action, after time.Duration,
	why run.WaitsFor, failure error) error {
	ex.Log.WarnContext(ctx, "a service has no capacity, and the call is made later", "counter", "call_postponed",
		"runId", ex.ID, "actionId", a.ID, "tool", a.Tool, "error", failure)
	return postpone(ctx, ex, a.ID, after, why)
}

var errLongWait = errors.New("the provider asked for a longer wait than an attempt allows")

// backOff waits before the next attempt: a random time up to 1, 2 or 4 seconds, or as long as the provider asks for. It
// returns errLongWait at once if that is too long.
func backOff(ctx context.Context, ex *unit.Execution, try int, failure error) error {
	asked := fault.As(failure).RetryAfter
	if asked > longestWait {
		return errLongWait
	}
	ex.CountRetry(observe.RetryTool)
	return ex.Sleep(ctx, max(asked, ex.Jitter(time.Second<<(try-1))))
}

// reconcile asks the tool for the outcome of a call, up to maxCallTries times. known is false if the tool cannot tell.
func reconcile(ctx context.Context, ex *unit.Execution, t *tool.Tool, call tool.Call,
	printed callOutput) (out tool.Outcome, known bool) {
	out = asked(ctx, ex, call, func(ctx context.Context, call tool.Call) (tool.Outcome, error) {
		if t.KeepsOutput {
			printed.give(&call)
		}
		return t.Reconcile(ctx, call)
	})
	return out, out.Verdict != tool.Unknown
}

// asked asks a tool what became of the call, up to maxCallTries times.
func asked(ctx context.Context, ex *unit.Execution, call tool.Call,
	ask func(context.Context, tool.Call) (tool.Outcome, error)) tool.Outcome {
	ctx, cancel := unit.Detached(ctx)
	defer cancel()
	for try := 1; try <= maxCallTries; try++ {
		out, err := ask(ctx, call)
		if err == nil {
			return out
		}
		ex.LogPanic(ctx, call.ActionID, err)
		ex.Log.WarnContext(ctx, "the outcome of an effect could not be read", "runId", ex.ID, "actionId",
			call.ActionID, "error", err)
		if try < maxCallTries && backOff(ctx, ex, try, err) != nil {
			break
		}
	}
	return tool.Outcome{Verdict: tool.Unknown, Reason: "The service does not say what happened."}
}

// forgetPlace drops the cached documents that the tool's place depends on, if a call may have changed them. t may be
// nil.
func forgetPlace(ex *unit.Execution, t *tool.Tool) {
	if t != nil && t.Moves {
		ex.Forget(t)
	}
}

// holdCall returns a context for a call, and the heartbeat of this process. A call that can be interrupted ends as soon
// as its run is cancelled.
func holdCall(ctx context.Context, ex *unit.Execution, t *tool.Tool, limit time.Duration) (context.Context,
	*unit.Heartbeat) {
	switch {
	case t.Interrupts():
		return ex.WatchedHeartbeat(ctx, limit, 0)
	case t.Interruptible:
		return ex.WatchedHeartbeat(ctx, limit, unit.WatchLate)
	}
	return ex.Heartbeat(ctx, limit, false)
}
