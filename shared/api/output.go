package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store/output"
)

const (
	maxBytesLine = 32 << 10 // bytes of output in one line of a stream
	maxPositions = 16       // maximum number of output parameters in one request
)

// outputs sends the stored output of a run's actions between the run's events: output appears while its action runs,
// and the last of it precedes the event of the action's outcome.
type outputs struct {
	r      *request
	out    *jsonStream
	runID  string
	at     map[string]int64 // for each action, the number of bytes sent or already held by the client
	ending map[string]func()
}

// outputs returns the outputs of a run. The parameters output=actionId:bytes say how many bytes of each output the
// client already has.
func (r *request) outputs(out *jsonStream, runID string) (*outputs, error) {
	o := &outputs{r: r, out: out, runID: runID, at: map[string]int64{}, ending: map[string]func(){}}
	positions := r.URL.Query()["output"]
	if len(positions) > maxPositions {
		return nil, fault.Invalid("output", "the limit is %d positions", maxPositions)
	}
	for _, p := range positions {
		id, bytes, _ := strings.Cut(p, ":")
		n, err := strconv.ParseInt(bytes, 10, 64)
		if _, twice := o.at[id]; twice || !run.ValidID(id) || err != nil || n < 0 || n > output.Max {
			return nil, fault.Invalid("output", "an action's id, once, a colon and a number of bytes from 0 to %d are "+
				"needed", output.Max)
		}
		o.at[id] = n
	}
	return o, nil
}

// send returns a function that sends bytes of an output.
func (o *outputs) send(id string) func(int64, []byte) error {
	return func(at int64, b []byte) error {
		for piece := range slices.Chunk(b, maxBytesLine) {
			o.out.write(bytesLine{"output", id, at, piece})
			at += int64(len(piece))
		}
		return nil
	}
}

// follow starts to send the output of the run's actions that are now running.
func (o *outputs) follow(ctx context.Context, w *loop.Watched) {
	for _, id := range w.Printing() {
		if o.ending[id] == nil {
			o.ending[id] = o.r.followOutput(ctx, o.runID, id, o.at[id], o.send(id),
				func(next int64) { o.at[id] = next })
		}
	}
}

// before sends whatever must precede the event: if it is an action's outcome, the rest of the action's output.
func (o *outputs) before(ctx context.Context, w *loop.Watched, e run.EventView) error {
	if e.Type != run.ActionFinished || e.Action == nil || w.Output(e.Action.ActionID) == loop.NoOutput {
		return nil
	}
	id := e.Action.ActionID
	o.end(id)
	k, err := output.Read(ctx, o.r.api.Loop.Store, o.runID, id)
	if err != nil {
		return err
	}
	return k.From(ctx, o.r.api.Loop.Store, o.at[id], o.send(id))
}

// end stops following an output.
func (o *outputs) end(id string) {
	if end := o.ending[id]; end != nil {
		end()
	}
	delete(o.ending, id)
}

// stop stops following all outputs.
func (o *outputs) stop() {
	for id := range o.ending {
		o.end(id)
	}
}

// followOutput calls each with an action's stored output from byte at on, in another goroutine, until end is called.
// end waits for the goroutine and passes the offset of the next byte to ended.
func (r *request) followOutput(ctx context.Context, runID, id string, at int64, each func(int64, []byte) error,
	ended func(next int64)) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	next := make(chan int64, 1)
	go func() {
		n, err := output.Follow(ctx, r.api.Loop.Store, runID, id, at, each)
		if err != nil {
			r.warn(ctx, "following an output failed", err, "runId", runID, "actionId", id)
		}
		next <- n
	}()
	return func() {
		cancel()
		ended(<-next)
	}
}

// following returns the context for following a run. It ends early enough to send an answer, or when the client
// disconnects.
func (r *request) following(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Now().Add(r.api.Budget)
	}
	ctx, cancel := context.WithDeadline(ctx, end.Add(-answerSpare))
	stop := context.AfterFunc(r.Context(), cancel)
	return ctx, func() { stop(); cancel() }
}

// follow streams a run that another process advances, until the run rests or this request's time is up. It returns the
// run's latest view.
func (r *request) follow(ctx context.Context, out *jsonStream, v *run.View) *run.View {
	ctx, cancel := r.following(ctx)
	defer cancel()
	printed := &outputs{r: r, out: out, runID: v.RunID, at: map[string]int64{}, ending: map[string]func(){}}
	defer printed.stop()
	after := v.LastEvent
	var last *loop.Watched
	var views []run.EventView
	for w, err := range r.api.Loop.Watch(ctx, r.uid, v.RunID) {
		if err == nil {
			last = w
			views, err = w.Events(after)
		}
		for _, e := range views {
			if err = printed.before(ctx, w, e); err != nil {
				break
			}
			out.writeEvent(e, v)
			after = e.Seq
		}
		if err != nil {
			r.warn(ctx, "following a run was cut off", err, "runId", v.RunID)
			break
		}
		if w.Rests() {
			break
		}
		printed.follow(ctx, w)
	}
	if last == nil {
		return v
	}
	now, err := last.View(context.WithoutCancel(ctx))
	if err != nil {
		r.warn(ctx, "a run that was followed could not be shown", err, "runId", v.RunID)
		return v
	}
	return now
}

// writeEvent sends an event in the form of POST /run/stream.
func (n *jsonStream) writeEvent(e run.EventView, v *run.View) {
	switch {
	case e.Action != nil:
		n.write(actionLine{"action", e.Action})
	case e.Type == run.RunStatusChange:
		n.write(statusLine{"status", e.Status, v.RunID, v.ThreadID})
	}
}

// octets writes bytes as they come. The response header is sent before the first byte, so an earlier error can still
// become a status.
type octets struct {
	w     http.ResponseWriter
	begun bool
}

func (o *octets) begin() error {
	o.begun = true
	o.w.Header().Set("Content-Type", "application/octet-stream")
	o.w.Header().Set("Cache-Control", "no-store")
	o.w.Header().Set("X-Accel-Buffering", "no")
	return send(o.w, nil)
}

func (o *octets) write(_ int64, b []byte) error { return send(o.w, b) }

// getOutput sends an action's stored output from byte N on. It stays live until the call has an outcome, the run ends,
// or the function's time is up. A client that was cut off asks again, from the number of bytes that it has.
func getOutput(r *request) (any, error) {
	runID, err := r.id("runId")
	if err != nil {
		return nil, err
	}
	id, err := r.id("actionId")
	if err != nil {
		return nil, err
	}
	at, err := r.number("from", 0, 0, output.Max)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), r.api.Budget)
	defer cancel()
	timer := time.AfterFunc(firstLine, cancel)
	defer timer.Stop()
	out, end := &octets{w: r.w}, func() {}
	defer func() { end() }()
	over := false
	for w, err := range r.api.Loop.Watch(ctx, r.uid, runID) {
		switch {
		case err != nil && out.begun: // the client asks again, from the bytes it has
			r.warn(ctx, "an output was cut off", err, "runId", runID, "actionId", id)
			return nil, nil
		case err != nil:
			return nil, err
		}
		state := w.Output(id)
		if state == loop.NoOutput {
			return nil, fault.NotFound()
		}
		if !out.begun {
			timer.Stop()
			if out.begin() != nil {
				return nil, nil
			}
			end = r.followOutput(ctx, runID, id, at, out.write, func(next int64) { at = next })
		}
		if over = state == loop.OutputOver; over {
			break
		}
	}
	if !out.begun {
		return nil, fault.Unavailable("This could not be read in time. Please try again.", ctx.Err())
	}
	end()
	end = func() {}
	if !over {
		return nil, nil
	}
	k, err := output.Read(ctx, r.api.Loop.Store, runID, id)
	if err == nil {
		err = k.From(ctx, r.api.Loop.Store, at, out.write)
	}
	if err != nil {
		r.warn(ctx, "an output was cut off", err, "runId", runID, "actionId", id)
	}
	return nil, nil
}
