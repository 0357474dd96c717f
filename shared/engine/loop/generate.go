package loop

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// holding holds the run's lease while it waits for the model's answer. It returns errHandOver if the call was cut short
// and another process or a later call must continue the run.
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

// withThoughts returns the context of a model call that passes on the model's thoughts as they arrive, up to the length
// that is shown. They are passed on only if the request asks for them and there is a reader.
func withThoughts(ctx context.Context, ex *unit.Execution, req model.Request) context.Context {
	if ex.Unread || !req.Settings.Thoughts {
		return ctx
	}
	left := run.MaxMessageText
	return model.WithThoughtSink(ctx, func(text string) {
		shown := clip.Prefix(text, left)
		if left -= len(shown); shown != "" {
			ex.Notify(unit.Update{Thought: shown})
		}
	})
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
