package loop

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// generate makes one model call while it holds the run's lease. It returns errHandOver if the call was cut short and
// another process or a later call must continue the run.
func generate(ctx context.Context, ex *unit.Execution, req model.Request, delta func(text string)) (*model.Reply,
	error) {
	return holding(ctx, ex, func(ctx context.Context) (*model.Reply, error) {
		return askModel(ctx, ex, req, delta)
	})
}

// askModel makes one model call. It adds the bytes of the files in the contents.
func askModel(ctx context.Context, ex *unit.Execution, req model.Request, delta func(string)) (*model.Reply, error) {
	var err error
	if req.Contents, err = conversation.WithFiles(ctx, ex, req.Contents); err != nil {
		return nil, err
	}
	ctx, span := ex.TraceModel(ctx, ex.Run, ex.Model, req)
	reply, err := ex.Model.Generate(ctx, req, delta)
	span.EndModel(reply, err)
	return reply, err
}

// holding holds the run's lease while it waits for the model's answer.
func holding(ctx context.Context, ex *unit.Execution, answer func(context.Context) (*model.Reply, error)) (*model.Reply,
	error) {
	asking, beat := ex.WatchedHeartbeat(ctx, ex.Limits().ModelTimeout, unit.WatchLate)
	defer beat.Release()
	reply, err := answer(asking)
	beat.Release()
	timedOut := errors.Is(asking.Err(), context.DeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
	outOfTime := ex.Progressed && timedOut && !unit.HasTimeFor(ctx, ex.Limits().ModelTimeout)
	if err != nil && (ex.CallerGone() || outOfTime) {
		return nil, errHandOver
	}
	return reply, err
}

// deltaSink returns a function that passes on the model's text as it arrives, up to the length that is shown. Text
// after that goes only to readers within the process. It returns nil if there is no reader, because a whole answer
// costs less than a stream.
func deltaSink(ex *unit.Execution) func(text string) {
	if ex.Unread {
		return nil
	}
	left := run.MaxMessageText
	return func(text string) {
		shown := clip.Prefix(text, left)
		left -= len(shown)
		if shown != "" {
			ex.Notify(unit.Update{Delta: shown})
		}
		if len(shown) < len(text) {
			left = 0 // no later text is shown
			ex.Notify(unit.Update{Beyond: text[len(shown):]})
		}
	}
}
