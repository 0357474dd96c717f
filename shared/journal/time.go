package journal

import (
	"context"
	"errors"
	"time"
)

// HasTimeFor reports whether a step that may take need fits into what is left of the function's time.
func HasTimeFor(ctx context.Context, need time.Duration) bool {
	end, ok := ctx.Deadline()
	return !ok || time.Until(end) >= need+Reserve
}

// Late reports whether the run should be handed over before its next step, since whoever asked waits no longer.
func Late(ex *Execution) bool { return !ex.Until.IsZero() && !time.Now().Before(ex.Until) }

// Stay returns the context of the steps with which ex moves the run for whoever gives ctx. It does not end when they
// leave, which is when ctx is cancelled: what is under way then is finished and recorded. Only a step that is
// interruptible ends with them ([HoldRun]), and none is begun after that ([Left]).
func Stay(ctx context.Context, ex *Execution) (context.Context, context.CancelFunc) {
	ex.mover = ctx
	kept := context.WithoutCancel(ctx)
	if end, ok := ctx.Deadline(); ok {
		return context.WithDeadline(kept, end)
	}
	return kept, func() {}
}

// Left reports whether whoever had ex move the run has left: another process, or a later call, goes on with it.
func Left(ex *Execution) bool { return ex.mover != nil && errors.Is(ex.mover.Err(), context.Canceled) }

// WithStepTimeout returns a context for a step: it ends after limit, or earlier so that the function's time suffices
// for a last commit.
func WithStepTimeout(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		limit = max(time.Second, min(limit, time.Until(end)-Reserve))
	}
	return context.WithTimeout(ctx, limit)
}

// Detached returns a context with time of its own for a commit that must not be lost, even when the caller's time has
// run out.
func Detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
}

// answerTimeout is how long a caller is kept waiting by a store that does not answer. The caller can ask again, and
// what was committed nevertheless is found by the sweep.
const answerTimeout = 9 * time.Second

// WithAnswerTimeout returns a context for what a caller waits for.
func WithAnswerTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, answerTimeout)
}
