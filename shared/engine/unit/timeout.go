package unit

import (
	"context"
	"errors"
	"time"
)

// HasTimeFor reports whether a step of duration need fits into the rest of the function's time.
func HasTimeFor(ctx context.Context, need time.Duration) bool {
	end, ok := ctx.Deadline()
	return !ok || time.Until(end) >= need+Reserve
}

// PastDeadline reports whether the run should be handed over before its next step, because the caller's waiting time is
// over.
func (ex *Execution) PastDeadline() bool { return !ex.Until.IsZero() && !time.Now().Before(ex.Until) }

// Detach returns the context of the steps in which ex advances the run for a caller with the context ctx. It keeps the
// deadline of ctx, but is not cancelled with it: a step in progress is finished and recorded. Only an interruptible
// step ends when the caller cancels ([Execution.Heartbeat]), and no further step begins ([Execution.CallerGone]).
func (ex *Execution) Detach(ctx context.Context) (context.Context, context.CancelFunc) {
	ex.caller = ctx
	kept := context.WithoutCancel(ctx)
	if end, ok := ctx.Deadline(); ok {
		return context.WithDeadline(kept, end)
	}
	return kept, func() {}
}

// CallerGone reports whether the caller has cancelled. Another process or a later call then continues the run.
func (ex *Execution) CallerGone() bool {
	return ex.caller != nil && errors.Is(ex.caller.Err(), context.Canceled)
}

// WithStepTimeout returns a context for a step. It ends after limit, or earlier if the function needs the rest of its
// time for a last commit.
func WithStepTimeout(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		limit = max(time.Second, min(limit, time.Until(end)-Reserve))
	}
	return context.WithTimeout(ctx, limit)
}

// Detached returns a context of 20 seconds for a commit that must not be lost, even if the caller's time has run out.
func Detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
}

// answerTimeout is how long a caller waits for a store that does not answer. The caller can ask again, and the sweep
// finds whatever was committed.
const answerTimeout = 9 * time.Second

// WithAnswerTimeout returns a context for work that a caller waits for.
func WithAnswerTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, answerTimeout)
}
