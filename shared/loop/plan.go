package loop

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"

	"github.com/countersign-run/countersign/shared/agents"
	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/policy"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/strictjson"
	"github.com/countersign-run/countersign/shared/tool"
)

// callModel calls the model once and commits its answer with everything that follows from it: the validated calls, the
// approvals that they need, or the end. The answer is stored before anything is done about it, and never asked for
// again.
func (ex *execution) callModel(ctx context.Context) error {
	if err := ex.claim(ctx, ex.limits().ModelTimeout); err != nil {
		return err
	}
	if st, _ := ex.next(ex.state, ex.run, ex.now()); st != stepCallModel {
		return nil
	}
	if over, err := ex.overBudget(ctx); over || err != nil {
		return err
	}
	req, err := ex.request(ctx)
	if err != nil {
		return ex.modelFailed(ctx, err)
	}
	turn := len(ex.state.Turns) + 1
	asking, cancel := withStepTimeout(ctx, ex.limits().ModelTimeout)
	defer cancel()
	reply, err := ex.Model.Generate(asking, req, ex.deltaSink())
	switch {
	case err != nil && ex.progressed && errors.Is(asking.Err(), context.DeadlineExceeded) &&
		!hasTimeFor(ctx, ex.limits().ModelTimeout):
		return errHandOver
	case err != nil:
		return ex.modelFailed(ctx, err)
	}
	places := ex.placements(ctx, reply.Calls)
	intent, started := run.Started{Owner: ex.owner, Attempt: 1}, ""
	err = ex.transition(ctx, func(tx *tx) error {
		started = tx.actionOfIntent(intent) // here already where the commit's answer was lost
		if len(tx.state.Turns) != turn-1 || tx.run.Lease.Owner != ex.owner {
			return nil // stored already, or another process has taken the run over
		}
		if st, _ := ex.next(tx.state, tx.run, tx.now); st != stepCallModel {
			return nil // cancelled or out of time meanwhile: what the model wants does not matter any more
		}
		if err := tx.recordTurn(reply, estimateTokens(req, reply), places); err != nil {
			return err
		}
		started, err = tx.startInSameCommit(ctx, intent)
		return err
	})
	if fault.Is(err, fault.Validation, codeTooLarge) {
		return ex.modelFailed(ctx,
			fault.New(fault.Model, codeTooLarge, "The model's answer is larger than can be kept.").Because(err))
	}
	if err != nil || started == "" {
		return err
	}
	return ex.callTool(ctx, ex.Tools[ex.state.Action(started).Tool], started)
}

// deltaSink returns a function that passes the model's text on as it comes, up to the length that is kept.
func (ex *execution) deltaSink() func(text string) {
	left := run.MaxMessageText
	return func(text string) {
		if len(text) > left {
			text = clip.Prefix(text, left)
			left = len(text) // nothing after it
		}
		left -= len(text)
		if text != "" {
			ex.notify(Update{Delta: text})
		}
	}
}

// request builds the request to the model: the agent's instructions, tools and settings, history, prompt, and this
// run's own turns, verbatim. A tool that is forced is forced once: then its result is there to speak of.
func (ex *execution) request(ctx context.Context) (model.Request, error) {
	contents, err := ex.contents()
	if err != nil {
		return model.Request{}, err
	}
	its := ex.Agents.Get(ex.run.Agent)
	if n := its.Limits.Contents; n > 0 {
		if err := contents.Fit(n); err != nil {
			return model.Request{}, err
		}
	}
	system, err := ex.instructions(ctx, its)
	if err != nil {
		return model.Request{}, err
	}
	turn, most := len(ex.state.Turns)+1, its.Limits.ModelCalls
	req := model.Request{System: system, Contents: contents.JSON(), Tools: its.Specs(ex.Tools),
		NoTools: turn >= most && most > 1, Settings: its.Model}
	if turn > 1 {
		req.Settings.Forced = ""
	}
	return req, nil
}

// instructions returns those of the agent, and how to read the records in the history, if there are any. The time is
// the run's, so that every turn gets the same text.
func (ex *execution) instructions(ctx context.Context, its *agents.Agent) (string, error) {
	s, err := its.Instructions(ctx, agents.State{CreatedAt: ex.run.CreatedAt, Region: ex.run.Region})
	if mark := ex.state.Input.Mark; mark != "" {
		s += recordInstructions(mark)
	}
	return s, err
}

// modelFailed ends the run. What was done before stays done, and the summary says so.
func (ex *execution) modelFailed(ctx context.Context, err error) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	ex.Log.WarnContext(ctx, "the model gave no usable answer", "runId", ex.id, "error", err)
	f := fault.As(err)
	if f.Class != fault.Model {
		f = fault.New(fault.Model, "failed", "The model could not be asked.").Because(err)
	}
	return ex.transition(ctx, func(tx *tx) error {
		if st, _ := ex.next(tx.state, tx.run, tx.now); st != stepCallModel || tx.run.Lease.Owner != ex.owner {
			return nil
		}
		tx.unrecordedCalls = 1
		return tx.endRun(failedEnd(f))
	})
}

// placement is where a tool's calls would act now, or the error that says why they cannot.
type placement struct {
	tool.Place
	err error
}

// placements returns, for each tool that is called, where it would act.
func (ex *execution) placements(ctx context.Context, calls []model.Call) map[string]placement {
	out := map[string]placement{}
	for _, c := range calls {
		t := ex.toolOf(ex.run, c.Name, false)
		if _, asked := out[c.Name]; t == nil || asked || !t.Placed() {
			continue
		}
		in, err := t.Place(ctx, ex.run.UID)
		ex.logPanic(ctx, "", err)
		out[c.Name] = placement{in, err}
	}
	return out
}

// recordTurn adds the model's answer to the run.
func (tx *tx) recordTurn(r *model.Reply, estimated int, places map[string]placement) error {
	turn := &run.Turn{Model: r.Model, Content: r.Content, Text: clip.Text(r.Text, run.MaxMessageText),
		Finish: r.Finish, Correction: r.Correction, Calls: len(r.Calls), Usage: r.Usage, Estimated: estimated}
	if r.Correction != "" {
		turn.Calls = 0
	}
	if err := tx.addEvent(run.Event{Type: run.ModelAnswered, Turn: turn}); err != nil {
		return err
	}
	switch {
	case r.Correction != "":
		return nil // the model gets the correction, within the bound on its calls
	case len(r.Calls) == 0:
		return tx.endWithAnswer(r.Text)
	case len(r.Calls) > model.MaxCalls:
		return tx.endRun(failedEnd(fault.New(fault.Model, "too_many_calls",
			"The model asked for %d actions at once, which is more than %d.", len(r.Calls), model.MaxCalls)))
	}
	for i, c := range r.Calls {
		call := run.ProposedCall{Turn: len(tx.state.Turns), Index: i, CallID: c.ID, Tool: c.Name}
		if err := tx.validateCall(call, c.Args, places[c.Name]); err != nil {
			return err
		}
	}
	return nil
}

// endWithAnswer ends the run with the model's words, followed by the server's own where the model's may claim what did
// not happen.
func (tx *tx) endWithAnswer(text string) error {
	note := tx.ex.verifiedSummary(tx.state, text)
	if note != "" {
		note = "\n\n" + note
	}
	text = clip.Text(text, run.MaxMessageText-len(note))
	end := &run.End{Status: run.Completed, Summary: text + note}
	if err := tx.addEvent(run.Event{Type: run.RunEnded, End: end}); err != nil {
		return err
	}
	return tx.appendLastMessage(end, len(text))
}

var validDisplayName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// displayName returns a tool's name as it may be stored and shown.
func displayName(name string) string {
	if !validDisplayName.MatchString(name) {
		return "unknown"
	}
	return name
}

// validateCall decides what becomes of one call: rejected, allowed, or waiting for approval (seed 000 §4 to §6).
// Nothing that the model says is trusted: the name must be known, the arguments are validated and normalised, and the
// policy sees the normalised ones.
func (tx *tx) validateCall(call run.ProposedCall, wanted json.RawMessage, at placement) error {
	id := run.ActionID(tx.run.ID, call.Turn, call.Index, 0)
	t := tx.ex.toolOf(tx.run, call.Tool, call.UserInitiated)
	call.Tool = displayName(call.Tool)
	if t == nil || t.UserOnly && !call.UserInitiated {
		return tx.rejectCall(id, call, fault.New(fault.Model, "unknown_tool", "There is no such tool."))
	}
	call.SideEffect, call.Final, call.Untrusted = t.SideEffect, t.Final, t.Untrusted
	if len(wanted) == 0 || wanted[0] != '{' {
		return tx.rejectCall(id, call,
			fault.New(fault.Model, "unreadable_arguments", "The arguments are not a JSON object."))
	}
	args, err := t.Normalize(wanted)
	if err != nil {
		return tx.rejectCall(id, call, err)
	}
	call.Args, call.Place, call.ArgsHash = args, at.Place, run.ArgsHash(tx.run.UID, t.Spec, at.Place, args)
	if at.err != nil {
		return tx.rejectCall(id, call, at.err)
	}
	return tx.applyPolicy(id, call, t)
}

// applyPolicy evaluates the policy for a call that is well-formed, and records the call.
func (tx *tx) applyPolicy(id string, call run.ProposedCall, t *tool.Tool) error {
	if tx.rejectedBefore(call.ArgsHash) {
		return tx.rejectCall(id, call,
			fault.New(fault.Policy, "rejected_before", "The user has already rejected exactly this."))
	}
	shown, err := previewAt(t, call.Place, call.Args)
	if err != nil {
		return tx.rejectCall(id, call, err)
	}
	if b, err := strictjson.Marshal(shown); err != nil || len(b)+len(call.Args) > maxSnapshot {
		return tx.rejectCall(id, call, fault.Invalid("", "this is more than can be shown to the user for approval"))
	}
	verdict, err := tx.verdict(t, call.Args)
	switch {
	case tool.IsPanic(err):
		return tx.rejectCall(id, call, err)
	case err != nil:
		return err
	}
	call.PolicyDecision, call.Rule, call.Reason, call.Allowed = string(verdict.Mode), verdict.Rule, verdict.Reason,
		verdict.Entries
	call.RequiresApproval = needsApproval(verdict, call.UserInitiated)
	switch {
	case verdict.Mode == policy.Deny:
		return tx.rejectCall(id, call, fault.New(fault.Policy, "denied", "%s", verdict.Reason))
	case call.RequiresApproval:
		u, err := tx.user()
		if err != nil {
			return err
		}
		if err := tx.checkCaps(u); err != nil {
			return tx.rejectCall(id, call, err)
		}
	}
	if err := tx.addEvent(run.Event{Type: run.ActionProposed, ActionID: id, Proposed: &call}); err != nil {
		return err
	}
	switch {
	case call.RequiresApproval:
		return tx.requestApproval(tx.state.Action(id), run.KindApproval, call.Reason)
	case t.Waits():
		return tx.leaveToClient(id, t)
	}
	return nil
}

// needsApproval reports whether the user must approve the call. A call that users make themselves needs it only where
// the policy asks for every call.
func needsApproval(v policy.Decision, userInitiated bool) bool {
	return v.Mode == policy.RequireApproval && (!userInitiated || v.Rule == policy.RuleAskedForAll)
}

// verdict evaluates the policy, with the user's own allowlist.
func (tx *tx) verdict(t *tool.Tool, args json.RawMessage) (policy.Decision, error) {
	u, err := tx.user()
	if err != nil {
		return policy.Decision{}, err
	}
	targets, err := t.Targets(args)
	if err != nil {
		return policy.Decision{}, err
	}
	return tx.ex.Rules.Decide(policy.Input{UID: tx.run.UID, Tool: tx.ex.Agents.Get(tx.run.Agent).Spec(t),
		Args: args, Targets: targets, Allowlist: u.Allow, Now: tx.now}), nil
}

// rejectedBefore reports whether the user has rejected exactly this in this run.
func (tx *tx) rejectedBefore(hash string) bool {
	for _, a := range tx.state.Actions {
		if a.Status == run.ActionRejected && a.ArgsHash == hash {
			return true
		}
	}
	return false
}

// rejectCall records a call as not carried out, and why; the model gets the reason, within the bound on its calls.
func (tx *tx) rejectCall(id string, call run.ProposedCall, why error) error {
	p := run.ErrorInfoOf(why)
	if call.PolicyDecision == "" {
		call.PolicyDecision = string(policy.Deny)
	}
	if err := tx.addEvent(run.Event{Type: run.ActionProposed, ActionID: id, Proposed: &call}); err != nil {
		return err
	}
	finished := &run.Finished{Status: run.ActionFailed, Execution: run.NotStarted, Error: p}
	if err := tx.addEvent(run.Event{Type: run.ActionFinished, ActionID: id, Finished: finished}); err != nil {
		return err
	}
	if call.SideEffect {
		tx.addAudit(audit.Denied, tx.state.Action(id),
			func(e *audit.Entry) { e.Decision, e.ErrorCode = call.PolicyDecision, string(p.Class) })
	}
	return nil
}
