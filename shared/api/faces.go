package api

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/api/tell"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/journal"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// clientThread returns the id of the user's conversation for which a client has an id of its own. Another user with
// that id has another conversation.
func clientThread(uid, id string) string { return run.KeyedThreadID(uid, "client:"+id) }

// clientKey returns what makes a client's message one run, however often it is sent. A message that was edited is
// another one.
func clientKey(threadID, messageID, bodyHash string) string {
	return "client " + threadID + " " + messageID + " " + bodyHash // no Idempotency-Key has a space
}

// telling tells a run to a client.
type telling struct {
	r   *request
	out *stream
	to  *tell.Teller

	// recall, where there is one, reads what a client is told before a run that it may have been told of already.
	recall func(ctx context.Context, runID string) error
}

// events returns a stream of server-sent events, with one more header if it has a name. stop ends the stream, with the
// data of a last event if there is some, where one was sent.
func (r *request) events(header [2]string, last string) (out *stream, stop func()) {
	reading, cancel := context.WithCancel(r.Context())
	r.Request = r.WithContext(reading)
	out = &stream{w: r.w, format: sse, header: header, lost: cancel}
	pings := out.pings()
	return out, func() {
		pings()
		if last != "" && out.started() {
			out.data(last)
		}
		cancel()
	}
}

// begin starts a run and tells it until it rests.
func (t telling) begin(ctx context.Context, q loop.StartRequest) error {
	v, err := t.r.api.Loop.Start(ctx, q, t.emit(ctx))
	if err != nil {
		return err
	}
	return t.follow(ctx, v)
}

// emit returns what tells the run as this process moves it.
func (t telling) emit(ctx context.Context) journal.Sink {
	return func(n journal.Update) {
		if n.Delta != "" {
			t.to.Delta(n.Delta)
		}
		if err := t.to.Add(n.Events); err != nil { // the loop has applied them before
			t.r.api.Log.ErrorContext(ctx, "a run's events could not be told", "runId", n.RunID, "error", err)
		}
	}
}

// follow tells what is left to tell of a run that this process has moved.
func (t telling) follow(ctx context.Context, v *run.View) error {
	if v.Moving || t.to.Told() < v.LastEvent { // another process goes on with it, or has
		return t.run(ctx, v.RunID)
	}
	return t.rest(ctx, v)
}

// run tells a run until nothing happens in it before somebody acts. Errors before the first byte are returned; what
// goes wrong later the client is told.
func (t telling) run(ctx context.Context, runID string) error {
	if t.recall != nil && !t.out.started() {
		if err := t.recall(ctx, runID); err != nil {
			return err
		}
	}
	following, cancel := t.r.following(ctx)
	defer cancel()
	defer time.AfterFunc(firstLine, func() {
		if !t.out.started() {
			cancel()
		}
	}).Stop()
	var last *loop.Watched
	woken := false
	for w, err := range t.r.api.Loop.Watch(following, t.r.uid, runID) {
		if err == nil {
			err = t.to.Add(w.Stored())
		}
		if err != nil {
			return err
		}
		if w.Idle() {
			last = w
			break
		}
		if !woken {
			w.Wake(ctx)
			woken = true
		}
	}
	switch {
	case last == nil && t.r.Context().Err() != nil: // nobody reads any more
		return nil
	case last == nil:
		return fault.Unavailable("This takes longer than one answer may, and goes on. Please load it again.",
			following.Err())
	}
	v, err := last.View(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	return t.rest(ctx, v)
}

// rest tells what the run waits for, or how it has ended.
func (t telling) rest(ctx context.Context, v *run.View) error {
	obs.SetRun(ctx, v.RunID)
	answer, err := t.r.api.withApprovals(ctx, t.r.uid, v)
	if err != nil {
		return err
	}
	t.to.Rest(answer.Approvals)
	return nil
}

// ended returns the error of a stream that nothing was sent of, and tells the client of one that came later.
func (t telling) ended(ctx context.Context, err error) error {
	if err == nil || !t.out.started() {
		return err
	}
	_, f := t.r.api.errorBody(ctx, err)
	t.r.api.Log.WarnContext(ctx, "a stream ended in an error", "class", f.Class, "code", f.Code, "error", err)
	t.to.Fail(f.Message)
	return nil
}

// resolveAll records what the user has decided about calls of one run, and returns the run. One that is refused does
// not take the others with it: its error comes beside the run, and alone where nothing was recorded.
func (r *request) resolveAll(ctx context.Context, decided []approval.Resolution) (v *run.View, refused error) {
	for _, d := range decided {
		now, err := r.api.Loop.Resolve(ctx, d)
		switch {
		case err == nil:
			v = now
		case refused == nil:
			refused = err
		}
	}
	return v, refused
}
