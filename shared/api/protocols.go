package api

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/api/stream"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// clientThread returns the thread ID for a conversation that a client names with its own ID. The same client ID of
// another user names another thread.
func clientThread(uid, id string) string { return run.KeyedThreadID(uid, "client:"+id) }

// clientKey returns the key that makes repeated sends of one client message a single run. An edited message is a new
// message.
func clientKey(threadID, messageID, bodyHash string) string {
	// an Idempotency-Key has no spaces, so the two cannot collide
	return "client " + threadID + " " + messageID + " " + bodyHash
}

// runStream streams a run to a client.
type runStream struct {
	r   *request
	out *jsonStream
	to  *stream.Stream

	// recall, if set, sends the earlier messages before a run that the client may already know.
	recall func(ctx context.Context, runID string) error
}

// events returns a stream of server-sent events. header is an optional extra header. stop ends the stream; if anything
// was sent, it first sends last as a final event, unless last is "".
func (r *request) events(header [2]string, last string) (out *jsonStream, stop func()) {
	reading, cancel := context.WithCancel(r.Context())
	r.Request = r.WithContext(reading)
	out = &jsonStream{w: r.w, format: sse, header: header, lost: cancel}
	pings := out.pings()
	return out, func() {
		pings()
		if last != "" && out.started() {
			out.data(last)
		}
		cancel()
	}
}

// load returns a function that reads a file of the run's answers.
func (r *request) load(runID string) func(number int) []byte {
	return func(number int) []byte {
		f, err := r.api.Loop.Attachment(r.Context(), r.uid, runID, number)
		if err != nil { // deleted, or the client is gone
			return nil
		}
		return f.Data
	}
}

// begin starts a run and streams it until it rests.
func (t runStream) begin(ctx context.Context, q loop.StartRequest, p loop.Prompt) error {
	q.Sink = t.emit(ctx)
	v, err := t.r.api.Loop.Start(ctx, q, p)
	if err != nil {
		return err
	}
	return t.follow(ctx, v)
}

// emit returns a sink that streams the run's updates while this process advances it.
func (t runStream) emit(ctx context.Context) unit.Sink {
	return func(n unit.Update) {
		if n.Thought != "" {
			t.to.Think(n.Thought)
		}
		if n.Delta != "" {
			t.to.Delta(n.Delta)
		}
		if err := t.to.Add(n.Events); err != nil { // cannot fail: the loop has applied the same events before
			t.r.api.Log.ErrorContext(ctx, "a run's events could not be streamed", "runId", n.RunID, "error", err)
		}
	}
}

// follow streams the rest of a run that this process has advanced.
func (t runStream) follow(ctx context.Context, v *run.View) error {
	if v.Moving || t.to.Delivered() < v.LastEvent { // another process continues the run, or has continued it
		return t.run(ctx, v.RunID)
	}
	return t.rest(ctx, v)
}

// run streams a run until it waits for someone or ends. It returns errors that occur before the first byte; the stream
// reports later ones.
func (t runStream) run(ctx context.Context, runID string) error {
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
	case last == nil && t.r.Context().Err() != nil: // the client is gone
		return nil
	case last == nil:
		return fault.Unavailable("This takes longer than one request may, and continues. Please reload.",
			following.Err())
	}
	v, err := last.View(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	return t.rest(ctx, v)
}

// rest sends what the run waits for, or how it ended.
func (t runStream) rest(ctx context.Context, v *run.View) error {
	obs.SetRun(ctx, v.RunID)
	answer, err := t.r.api.withApprovals(ctx, t.r.uid, v)
	if err != nil {
		return err
	}
	t.to.Rest(answer.Approvals)
	return nil
}

// ended returns the error of a stream that has sent nothing. If the stream has begun, it sends the error to the client
// instead.
func (t runStream) ended(ctx context.Context, err error) error {
	if err == nil || !t.out.started() {
		return err
	}
	_, f := t.r.api.errorBody(ctx, err)
	t.r.warn(ctx, "a stream ended in an error", err, "class", f.Class, "code", f.Code)
	t.to.Fail(f.Message)
	return nil
}

// resolveAll records the user's decisions about calls of one run, and returns the run. A refused decision does not stop
// the others: refused is the first error. If nothing was recorded, v is nil.
func (r *request) resolveAll(ctx context.Context, decided []approval.Resolution) (v *run.View, refused error) {
	for _, d := range decided {
		now, err := r.resolve(ctx, d)
		switch {
		case err == nil:
			v = now
		case refused == nil:
			refused = err
		}
	}
	return v, refused
}
