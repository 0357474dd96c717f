package countersign

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// move is one call that advances a run of a session. It begins at the start of the run or after its last stored step,
// and ends when the run has ended or waits for a decision that this call does not make.
type move struct {
	s     *Session
	begin func(context.Context, unit.Sink) (*run.View, error) // starts the run, or continues it
	runID string                                              // set once it is known
	asked map[string]bool                                     // approvals that Approve was called with

	invoked string // the skill that the prompt invokes, until its event was sent; empty: none

	answer *json.RawMessage // receives a typed answer; nil: the run has none
}

func newMove(s *Session) *move { return &move{s: s, asked: map[string]bool{}} }

// left reports whether this call detached from the run before the run came to rest.
func (m *move) left(ctx context.Context, v *run.View, err error) bool {
	return err != nil || ctx.Err() != nil && !ended(v.Status)
}

// failed returns the reason why this call detached.
func (m *move) failed(ctx context.Context, err error) error {
	if open := (*run.OpenError)(nil); errors.As(err, &open) {
		return m.s.refused(ctx, open)
	}
	return why(ctx, err)
}

// sofar returns the known result of a run from which this call detached, or nil if it began none.
func (m *move) sofar() *Result {
	if m.runID == "" {
		return nil
	}
	return &Result{SessionID: m.s.id, RunID: m.runID, Status: CutOff}
}

// step advances the run until it rests. If another process advances the run, step waits for it.
func (m *move) step(ctx context.Context, sink unit.Sink) (*run.View, error) {
	leave, err := m.s.agent.core.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	begin := m.begin
	m.begin = m.resume
	ctx = context.WithValue(ctx, moveKey{}, m)
	for {
		v, err := begin(ctx, sink)
		if v != nil {
			m.runID = v.RunID
		}
		if !unit.Held(err) {
			m.log(ctx, v, err)
			return v, err
		}
		if err := m.await(ctx); err != nil {
			return nil, err
		}
		begin = m.resume
	}
}

// moveKey is the context key of the *move that makes a step, and stopKey that of the function that makes it leave.
type (
	moveKey struct{}
	stopKey struct{}
)

// contextIn returns what a hook knows of the session whose run the step with ctx moves.
func (c *core) contextIn(ctx context.Context) *SessionContext {
	m, ok := ctx.Value(moveKey{}).(*move)
	if !ok { // a request without a session
		return c.contextOf(tool.Call{})
	}
	return c.contextOf(tool.Call{UID: m.s.agent.user, ThreadID: m.s.id, RunID: m.runID})
}

// stopMove makes the step with ctx leave its run, and the call that advances the run return err. It returns the error
// of the model call that ends with it.
func stopMove(ctx context.Context, err error) error {
	stop, ok := ctx.Value(stopKey{}).(context.CancelCauseFunc)
	if ok && model.AwaitCommit(ctx) == nil { // stopped before, the commit that the call rests on would be lost
		stop(programError{err})
	}
	return fault.New(fault.Model, model.CodeCancelled, "A function of the program stopped the model call.")
}

// log logs the state of the run.
func (m *move) log(ctx context.Context, v *run.View, err error) {
	line := []any{"sessionId", m.s.id, "runId", m.runID}
	switch {
	case err != nil:
		m.s.agent.core.log.InfoContext(ctx, "a run was left", append(line, "error", err)...)
	case v != nil:
		m.s.agent.core.log.InfoContext(ctx, "a run has come to rest", append(line, "status", v.Status)...)
	}
}

func (m *move) resume(ctx context.Context, sink unit.Sink) (*run.View, error) {
	return m.s.agent.core.loop.Resume(ctx, queue.Message{RunID: m.runID, Agent: m.s.agent.core.name,
		UID: m.s.agent.user, ThreadID: m.s.id}, sink)
}

// await waits while another process advances the run. It returns when the run rests, or when that process's lease has
// ended.
func (m *move) await(ctx context.Context) error {
	l, user := m.s.agent.core.loop, m.s.agent.user
	ex := l.NewExecution(m.runID, nil)
	if err := ex.LoadOwned(ctx, user); err != nil {
		return err
	}
	soon, stop := context.WithTimeout(ctx, ex.Run.Lease.Until.Sub(ex.Now())+time.Millisecond)
	defer stop()
	if _, err := l.AwaitRest(soon, user, m.runID); err != nil && soon.Err() == nil {
		return err
	}
	return ctx.Err()
}

// open returns the approvals that the run waits for.
func (m *move) open(ctx context.Context, v *run.View) ([]Approval, error) {
	var all []Approval
	known := map[string]run.ApprovalView{}
	for _, w := range v.Waiting {
		known[w.ApprovalID] = w
	}
	for _, a := range v.Actions {
		if a.ApprovalID == "" || a.Decision != "" || a.Status != run.ActionAwaiting && a.Kind != run.KindReview {
			continue
		}
		w, read := known[a.ApprovalID]
		if !read {
			var stored run.Approval
			if _, err := document.Get(ctx, m.s.agent.core.loop.Store, document.ApprovalPath(a.ApprovalID),
				&stored); err != nil {
				return nil, unit.StoreError(err)
			}
			w = stored.View()
		}
		all = append(all, approvalOf(w))
	}
	return all, nil
}

// decide calls Options.Approve with each approval that this call has not passed to it yet. It reports whether one was
// decided.
func (m *move) decide(ctx context.Context, open []Approval) (decided bool, err error) {
	approve := m.s.agent.core.options.Approve
	if approve == nil {
		return false, nil
	}
	for _, a := range open {
		if m.asked[a.ID] {
			continue
		}
		m.asked[a.ID] = true
		d, err := approve(ctx, a)
		if err != nil {
			return false, programError{err}
		}
		if d.decision == "" { // Later
			continue
		}
		// the approval is stale and is replaced, or has expired: the run shows which
		if err := m.s.agent.resolveFirmly(ctx, a, d); err != nil && !fault.Is(err, fault.Policy, fault.CodeStaleView) &&
			!fault.Is(err, fault.Policy, fault.CodeExpired) && !fault.Is(err, fault.Policy, fault.CodeAlreadyResolved) {
			return false, err
		}
		decided = true
	}
	return decided, nil
}

// rest is the state in which a run has come to rest.
type rest struct {
	view *run.View
	open []Approval
	more bool // something was decided, so the run continues
}

// decideOpen gets decisions for the waiting approvals. It calls ask with the approvals before it calls Options.Approve.
func (m *move) decideOpen(ctx context.Context, v *run.View, ask func(a Approval, seq int64) bool) (r rest, err error) {
	r.view = v
	if ended(v.Status) {
		return r, nil
	}
	if r.open, err = m.open(ctx, v); err != nil {
		return r, err
	}
	if ask != nil && len(r.open) > 0 {
		numbers, err := m.numbers(ctx)
		if err != nil {
			return r, err
		}
		for _, a := range r.open {
			if !m.asked[a.ID] && !ask(a, numbers[a.ID]) {
				return r, nil
			}
		}
	}
	r.more, err = m.decide(ctx, r.open)
	return r, err
}

// numbers returns, by approval, the number of the event that stored it.
func (m *move) numbers(ctx context.Context) (map[string]int64, error) {
	ex := m.s.agent.core.loop.NewExecution(m.runID, nil)
	if err := ex.LoadOwned(ctx, m.s.agent.user); err != nil {
		return nil, err
	}
	numbers := map[string]int64{}
	for _, e := range ex.Events {
		if e.Wait != nil {
			numbers[e.Wait.ApprovalID] = e.Seq
		}
	}
	return numbers, nil
}

// result returns the result of the run and the error that it ended with.
func (m *move) result(r rest) (*Result, error) {
	v := r.view
	res := &Result{SessionID: m.s.id, RunID: v.RunID, Status: Waiting, Approvals: r.open, Usage: usageOf(v),
		Cost: v.Cost, Files: filesIn(v)}
	switch v.Status {
	case run.Queued, run.Planning, run.Executing: // another process has to continue
		res.Status = CutOff
	case run.Completed:
		res.Status, res.Text = Completed, v.Text()
		if m.answer != nil {
			*m.answer = v.Output
		}
	case run.Failed:
		res.Status, res.Text = Failed, v.LastWords()
		e := &Error{Class: Class(v.ErrorCode), Code: string(v.ErrorReason), Message: v.Message}
		if v.ErrorReason == run.CodeContextFull {
			e.cause = ErrContextFull
		}
		return res, budgetError(v, res, e)
	}
	return res, nil
}

func usageOf(v *run.View) Usage {
	u := v.Usage
	return Usage{u.Prompt, u.Cached, u.Output, u.Thoughts, u.Total}
}

// bound returns the context of a call that advances runs. It is cancelled when ctx ends or the agent is closed. It has
// no deadline, because the loop would take a deadline for the end of its process and begin no step that might exceed
// it.
func (c *core) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	bound, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	ends := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	closes := context.AfterFunc(c.leave, func() { cancel(ErrClosed) })
	if ctx.Err() != nil {
		cancel(context.Cause(ctx))
	}
	return context.WithValue(bound, stopKey{}, cancel), func() { ends(); closes(); cancel(nil) }
}

// why returns the reason why this call detached from a run before it rested.
func why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		cause := context.Cause(ctx)
		if returned := (programError{}); errors.As(cause, &returned) {
			return returned.error
		}
		return cause
	}
	return public(err)
}

// resolveTries is the number of tries to store a decision if the store does not answer.
const resolveTries = 5

// resolveFirmly records a decision, and retries if the store does not answer in time, so that the user need not
// decide twice.
func (a *Agent) resolveFirmly(ctx context.Context, ap Approval, d Decision) (err error) {
	for range resolveTries {
		if err = a.resolve(ctx, ap, d); ctx.Err() != nil || !fault.Is(err, fault.Tool, fault.CodeStoreUnavailable) {
			return err
		}
	}
	return err
}

// resolve records a decision.
func (a *Agent) resolve(ctx context.Context, ap Approval, d Decision) error {
	args, err := d.args()
	if err != nil || d.decision == "" {
		return err
	}
	_, err = a.core.loop.Resolve(ctx, approval.Resolution{UID: a.user, ApprovalID: ap.ID, Decision: d.decision,
		ArgsHash: ap.hash, EditedArgs: args, Comment: d.comment, UndoWindow: d.undoWindow})
	return err
}

// refused returns the error of a start in a session that has an open run.
func (s *Session) refused(ctx context.Context, open *run.OpenError) error {
	e, err := s.openError(ctx, open.RunID)
	if err != nil {
		return public(err)
	}
	return e
}

// openError describes the state of the session's open run.
func (s *Session) openError(ctx context.Context, runID string) (*OpenError, error) {
	ex := s.agent.core.loop.NewExecution(runID, nil)
	if err := ex.LoadOwned(ctx, s.agent.user); err != nil {
		return nil, err
	}
	e := &OpenError{RunID: runID, Status: statusOf(ex)}
	m := &move{s: s}
	open, err := m.open(ctx, ex.View())
	e.Approvals = slices.Clip(open)
	return e, err
}

// statusOf returns the status of a run.
func statusOf(ex *unit.Execution) Status {
	st, _ := ex.Next()
	switch {
	case ex.State.End != nil && ex.State.End.Status == run.Failed:
		return Failed
	case ex.State.End != nil:
		return Completed
	case ex.Run.Lease.Held("", ex.Now()):
		return Running
	case st == run.StepWait:
		return Waiting
	}
	return CutOff
}
