package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

func postRun(r *request) (any, error) {
	p := r.patience(maxWait)
	q, in, err := r.ask()
	if err != nil {
		return nil, err
	}
	if p.preferred {
		q.Until = p.until
	}
	ctx, cancel := r.working()
	defer cancel()
	v, err := r.api.Loop.Start(ctx, q, in)
	if err != nil {
		return nil, err
	}
	obs.SetRun(ctx, v.RunID)
	v = r.settled(ctx, v, p.keyed(q.Key))
	answer, err := r.api.withApprovals(ctx, r.uid, v)
	switch {
	case err != nil:
		return nil, err
	case v.Moving:
		return r.goesOn(answer), nil
	}
	return answer, nil
}

// goesOn returns a 202 answer for a run that continues without this request, with the run's URL in Location. The body
// follows seed 000 §2, whose statuses have no value for work in progress. It uses awaiting_confirmation, the only
// status that does not mean that the run has ended. Actions in progress are omitted, because seed 000 has no state for
// them either. Approvals that already wait are included.
func (r *request) goesOn(answer runAnswer) accepted {
	v := answer.View
	r.w.Header().Set("Location", "/api/agent/runs/"+v.RunID)
	r.w.Header().Set("Retry-After", "1")
	answered := *v
	answered.Status, answered.Actions = run.Awaiting, []*run.ActionView{}
	for _, a := range v.Actions {
		if a.Status != run.ActionPlanned && a.Status != run.ActionExecuting {
			answered.Actions = append(answered.Actions, a)
		}
	}
	return accepted{runAnswer{View: &answered, Approvals: answer.Approvals}}
}

// runAnswer is a run with its waiting approvals (seed 000 §4.6: the pending approval payload).
type runAnswer struct {
	*run.View
	Approvals []run.ApprovalView `json:"approvals,omitempty"`
}

// withApprovals returns the run with its waiting approvals: those already in v, and the others from the store. An
// approval can wait while another action of the run is in progress. A run that has ended has none.
func (a *API) withApprovals(ctx context.Context, uid string, v *run.View) (runAnswer, error) {
	if v.Status == run.Completed || v.Status == run.Failed {
		return runAnswer{View: v}, nil
	}
	out := runAnswer{View: v, Approvals: v.Waiting}
	var others []string
	for _, act := range v.Actions {
		here := func(ap run.ApprovalView) bool { return ap.ApprovalID == act.ApprovalID }
		if act.ApprovalID != "" && act.Decision == "" && !slices.ContainsFunc(v.Waiting, here) {
			others = append(others, act.ApprovalID)
		}
	}
	if len(others) == 0 {
		return out, nil
	}
	aps, err := a.Records.Approvals(ctx, uid, others)
	if err != nil {
		return runAnswer{View: v}, err
	}
	out.Approvals = append(out.Approvals, aps...)
	order := func(ap run.ApprovalView) int {
		return slices.IndexFunc(v.Actions, func(act *run.ActionView) bool { return act.ActionID == ap.ActionID })
	}
	slices.SortFunc(out.Approvals, func(a, b run.ApprovalView) int { return cmp.Compare(order(a), order(b)) })
	return out, nil
}

func getRun(r *request) (any, error) {
	id, err := r.id("runId")
	if err != nil {
		return nil, err
	}
	check := r.URL.Query().Get("check")
	if check != "" && check != "true" {
		return nil, fault.Invalid("check", "must be true or absent")
	}
	v, events, err := r.api.Loop.Get(r.Context(), r.uid, id)
	if err != nil {
		return nil, err
	}
	if err := loop.AddRecords(r.Context(), r.api.Loop, r.uid, v, events, check != ""); err != nil {
		return nil, err
	}
	return r.api.withApprovals(r.Context(), r.uid, v)
}

func postCancel(r *request) (any, error) {
	id, err := r.id("runId")
	if err != nil {
		return nil, err
	}
	v, err := r.api.Loop.Cancel(r.Context(), r.uid, id)
	if err != nil {
		return nil, err
	}
	return r.api.withApprovals(r.Context(), r.uid, v)
}

// postCompensate starts to undo an action, and answers with the run that asks the user to approve that.
func postCompensate(r *request) (any, error) {
	id, err := r.id("runId")
	if err != nil {
		return nil, err
	}
	var in struct {
		ActionID string `json:"actionId"`
	}
	if _, err := r.decode(&in); err != nil {
		return nil, err
	}
	if !run.ValidID(in.ActionID) {
		return nil, fault.Invalid("actionId", "invalid ID")
	}
	ctx, cancel := r.working()
	defer cancel()
	v, err := loop.Compensate(ctx, r.api.Loop, run.ActionRef{RunID: id, ActionID: in.ActionID},
		loop.StartRequest{UID: r.uid, Email: r.email, Origin: r.Header.Get("Origin")})
	if err != nil {
		return nil, err
	}
	obs.SetRun(ctx, v.RunID)
	return r.api.withApprovals(ctx, r.uid, v)
}

func postResume(r *request) (any, error) {
	d, err := r.push()
	switch {
	case err != nil && !isForgettable(err):
		r.api.Log.ErrorContext(r.Context(), "a push message is refused", "counter", "push_refused", "error", err)
		return nil, err // redelivered, and finally moved to the dead-letter topic for an operator
	case err != nil:
		r.api.Log.WarnContext(r.Context(), "a push message is malformed and was dropped; sending it again would "+
			"not mend it", "counter", "push_malformed", "error", err)
		r.w.WriteHeader(http.StatusNoContent)
		return nil, nil
	}
	ctx, cancel := r.working()
	defer cancel()
	obs.SetRun(ctx, d.RunID)
	if err := r.api.Move(ctx, d); err != nil {
		return nil, err
	}
	r.w.WriteHeader(http.StatusNoContent)
	return nil, nil
}

// Move advances the run that a message names. It returns nil if nothing is left to do, which includes a run whose agent
// another function serves. After an error the message must be redelivered.
func (a *API) Move(ctx context.Context, d queue.Delivery) error {
	if !a.Loop.Serves(d.Agent) { // Pub/Sub's filter drops these; the emulator has no filter
		a.Log.InfoContext(ctx, "a push message is for an agent that another function serves", "counter",
			"push_elsewhere", "runId", d.RunID, "agent", d.Agent)
		return nil
	}
	if d.Attempt >= 4 {
		a.Log.WarnContext(ctx, "a push message was delivered many times", "counter", "push_attempts", "attempt",
			d.Attempt, "runId", d.RunID)
	}
	_, err := a.Loop.Resume(ctx, d.Message, nil)
	switch {
	case fault.Is(err, fault.Auth, fault.CodeNotFound):
		a.Log.WarnContext(ctx, "a push message names an unknown run", "counter", "push_orphan", "runId",
			d.RunID)
	case unit.Postponed(err): // recorded and logged
	case err != nil && fault.As(err).Status() < 500:
		return fault.New(fault.Tool, fault.CodeStoreUnavailable, "Temporarily unavailable; redeliver.").Because(err)
	case err != nil:
		return err
	}
	return nil
}

// isForgettable reports whether to acknowledge an unreadable message because every redelivery would be just as
// unreadable. A truncated message may arrive whole next time. A message that is too large or from another subscription
// was not sent by this server: an operator must look at its sender.
func isForgettable(err error) bool {
	f := fault.As(err)
	whole := f.Code != codeUnreadable && f.Code != fault.CodeTimeout && f.Code != fault.CodeTooLarge
	return f.Class == fault.Validation && whole
}

// swept is the answer to a sweep.
type swept struct {
	OK bool `json:"ok"`
	loop.SweepResult
	Deleting int `json:"deleting"` // conversations whose deletion was interrupted
	Deleted  int `json:"deleted"`  // of those, the number now deleted
	Expired  int `json:"expired"`  // conversations deleted because their retention time is over
	Files    int `json:"files"`    // uploaded files and objects that were deleted
	Logged   int `json:"logged"`   // audit entries that were added to the log
}

// postSweep serves the scheduler, whose request has no body, and the sweep's own messages, which name one shard each.
func postSweep(r *request) (any, error) {
	if r.ContentLength != 0 {
		return r.sweepShard()
	}
	ctx, cancel := r.working()
	defer cancel()
	given := r.api.Loop.GiveShards(ctx)
	s, err := r.api.Loop.Sweep(ctx)
	deletions, e := r.api.Records.FinishDeletions(ctx)
	turn := r.api.Loop.Now().Unix() / 60 % document.Shards
	expired, kept := r.expire(ctx, turn)
	files, left := r.api.Records.SweepFiles(ctx, turn)
	logged := r.publishLog(ctx)
	if err := errors.Join(given, err, e, kept, left); err != nil {
		return nil, fault.New(fault.Tool, fault.CodeStoreUnavailable, "The sweep could not be finished.").Because(err)
	}
	if n, err := linking.Sweep(ctx, r.api.Loop.Store, r.api.Loop.Now()); err != nil {
		r.api.Log.WarnContext(ctx, "ended consents could not be deleted; the next sweep tries again",
			"deleted", n, "error", err)
	}
	r.logSwept(ctx, s)
	if files > 0 {
		r.api.Log.InfoContext(ctx, "the sweep deleted uploaded files", "counter", "sweep_files", "deleted", files)
	}
	if deletions.Begun > 0 {
		r.api.Log.InfoContext(ctx, "the sweep continued deletions", "counter", "sweep_deletions", "begun",
			deletions.Begun, "gone", deletions.Gone)
	}
	return swept{true, s, deletions.Begun, deletions.Gone, expired, files, logged}, nil
}

// publishLog appends to the log of the audit. A failure does not hold up the sweep, and the next sweep tries again.
func (r *request) publishLog(ctx context.Context) (added int) {
	if r.api.AuditLog == nil {
		return 0
	}
	added, err := r.api.AuditLog.Publish(ctx)
	if err != nil {
		r.api.Log.ErrorContext(ctx, "the log of the audit could not be published; the next sweep tries again",
			"counter", "log_failed", "error", err)
	}
	return added
}

// expire deletes the conversations of a shard whose retention time is over, and expired audit entries. Each sweep looks
// at one shard of conversations, which is often enough for a retention time in days. If the shard has more, another
// message continues it.
func (r *request) expire(ctx context.Context, shard int64) (deleted int, err error) {
	if r.api.Expiry != nil {
		if _, err := r.api.Expiry.Audit(ctx); err != nil {
			return 0, err
		}
	}
	u, err := r.api.Records.ExpireThreads(ctx, shard)
	if u.Found > 0 {
		r.api.Log.InfoContext(ctx, "the sweep found conversations to delete", "counter",
			"sweep_unused", "found", u.Found, "deleted", u.Deleted, "more", u.More)
	}
	if s := r.api.Loop.Sweeper; u.More && s != nil {
		err = errors.Join(err, s.Sweep(ctx, queue.Shard{Number: shard, Unused: true}))
	}
	return u.Deleted, err
}

// sweepShard continues a shard that another request has handed over. A malformed message is dropped, because the next
// sweep finds the due runs anyway.
func (r *request) sweepShard() (any, error) {
	data, err := r.body()
	if err != nil {
		return nil, err
	}
	at, err := queue.ParseShard(data, r.api.Subscription)
	if err != nil && isForgettable(err) {
		r.api.Log.WarnContext(r.Context(), "a sweep message is malformed and was dropped", "counter",
			"push_malformed", "error", err)
		return swept{OK: true}, nil
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	if at.Unused {
		expired, err := r.expire(ctx, at.Number)
		if err != nil {
			return nil, fault.New(fault.Tool, fault.CodeStoreUnavailable,
				"The sweep could not be finished.").Because(err)
		}
		return swept{OK: true, Expired: expired}, nil
	}
	s, err := r.api.Loop.SweepShard(ctx, at)
	if err != nil && isForgettable(err) {
		return swept{OK: true}, nil // the shard does not exist
	}
	if err != nil {
		return nil, fault.New(fault.Tool, fault.CodeStoreUnavailable, "The sweep could not be finished.").Because(err)
	}
	r.logSwept(ctx, s)
	return swept{OK: true, SweepResult: s}, nil
}

func (r *request) logSwept(ctx context.Context, s loop.SweepResult) {
	if s.Due > 0 {
		r.api.Log.InfoContext(ctx, "the sweep found runs that were due", "counter", "sweep_due", "due", s.Due,
			"published", s.Published, "handed", s.Handed, "more", s.More)
	}
}
