package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// The times of a stream.
const (
	pingEvery = 15 * time.Second // maximum silence, so that proxies keep the connection open
	firstLine = 10 * time.Second // maximum time to read a run before its stream is refused
	writeTime = 10 * time.Second // a client that reads nothing for this long is dropped; the run continues
)

// A format is how a stream frames what it sends.
type format struct {
	media         string
	before, after string // around each JSON object
	ping          string // keeps the connection alive
}

// pingLine is the keep-alive line of NDJSON.
var pingLine = struct {
	Type string `json:"type"`
}{"ping"}

// The formats: NDJSON, with one JSON object per line, and server-sent events, where a comment keeps the connection
// alive.
var (
	ndjson = format{"application/x-ndjson", "", "\n", `{"type":"` + pingLine.Type + `"}` + "\n"}
	sse    = format{"text/event-stream", "data: ", "\n\n", ": ping\n\n"}
)

// jsonStream writes JSON objects. The response header is sent with the first object, so an earlier error can still
// become a status. After a client has disconnected or stopped reading, the stream drops everything, and the run
// continues.
type jsonStream struct {
	format
	header [2]string // name and value of one more header, or empty
	mu     sync.Mutex
	w      http.ResponseWriter
	begun  bool
	gone   bool
	last   time.Time
	lost   func() // called when the client is gone; can be nil
}

func (n *jsonStream) write(v any) {
	b, err := strictjson.Marshal(v)
	if err != nil {
		return // cannot happen: a test marshals every type that is sent
	}
	n.data(string(b))
}

// data sends one event with this data.
func (n *jsonStream) data(s string) { n.send(n.before + s + n.after) }

func (n *jsonStream) send(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.gone {
		return
	}
	if !n.begun {
		n.begun = true
		n.w.Header().Set("Content-Type", n.media+"; charset=utf-8")
		n.w.Header().Set("Cache-Control", "no-store")
		n.w.Header().Set("X-Accel-Buffering", "no")
		if n.header[0] != "" {
			n.w.Header().Set(n.header[0], n.header[1])
		}
	}
	if n.last = time.Now(); send(n.w, []byte(s)) != nil {
		n.gone = true
		if n.lost != nil {
			n.lost()
		}
	}
}

// send writes the bytes and flushes them. An error means that the client is gone or reads nothing.
func send(w http.ResponseWriter, b []byte) error {
	rc := http.NewResponseController(w)
	if err := rc.SetWriteDeadline(time.Now().Add(writeTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := w.Write(b); err != nil {
		return err
	}
	return rc.Flush()
}

func (n *jsonStream) started() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.begun
}

// pings keeps the connection alive until stop is called.
func (n *jsonStream) pings() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for wait.For(ctx, pingEvery/3) == nil {
			n.mu.Lock()
			quiet := n.begun && time.Since(n.last) > pingEvery*2/3
			n.mu.Unlock()
			if quiet {
				n.send(n.ping)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// The lines of POST /run/stream (seed 000 §2, contract §1).
type (
	statusLine struct {
		Type     string     `json:"type"`
		Status   run.Status `json:"status"`
		RunID    string     `json:"runId"`
		ThreadID string     `json:"threadId"`
	}
	deltaLine struct {
		Type  string `json:"type"`
		Delta string `json:"delta"`
	}
	thoughtLine struct { // a piece of the model's thoughts
		Type  string `json:"type"`
		Delta string `json:"delta"`
	}
	fileLine struct { // a file of the answer or of a result; its bytes are at /runs/{runId}/attachments/{number}
		Type  string           `json:"type"`
		RunID string           `json:"runId"`
		File  attachment.Facts `json:"file"`
	}
	outputLine struct {
		Type     string `json:"type"`
		ActionID string `json:"actionId"`
		Text     string `json:"text"`
	}
	bytesLine struct { // a part of a stored output
		Type     string `json:"type"`
		ActionID string `json:"actionId"`
		Offset   int64  `json:"offset"`
		Data     []byte `json:"data"`
	}
	actionLine struct {
		Type   string          `json:"type"`
		Action *run.ActionView `json:"action"`
	}
	resultLine struct {
		Type   string    `json:"type"`
		Result runAnswer `json:"result"`
	}
	errorLine struct {
		Type      string      `json:"type"`
		Error     string      `json:"error"`
		ErrorCode fault.Class `json:"errorCode"`
		Code      fault.Code  `json:"code"`
		RequestID string      `json:"requestId"`
		RunID     string      `json:"runId,omitempty"`
		Result    *runAnswer  `json:"result,omitempty"`
	}
)

func postStream(r *request) (any, error) {
	q, in, err := r.ask()
	if err != nil {
		return nil, err
	}
	out := &jsonStream{w: r.w, format: ndjson}
	stop := out.pings()
	defer stop()
	ctx, cancel := r.working()
	defer cancel()
	q.Sink = func(n unit.Update) {
		switch {
		case n.Thought != "":
			out.write(thoughtLine{"thought", n.Thought})
		case n.Delta != "":
			out.write(deltaLine{"delta", n.Delta})
		case len(n.Files) > 0:
			for _, f := range n.Files {
				out.write(fileLine{"file", n.RunID, f})
			}
		case n.Output != nil && n.Output.Data != nil:
			out.write(bytesLine{"output", n.Output.ActionID, n.Output.Offset, n.Output.Data})
		case n.Output != nil:
			out.write(outputLine{"output", n.Output.ActionID, n.Output.Text})
		case n.Action != nil:
			out.write(actionLine{"action", n.Action})
		case n.Status == run.Planning || n.Status == run.Executing || n.Status == run.Awaiting:
			out.write(statusLine{"status", n.Status, n.RunID, n.ThreadID})
		}
	}
	v, err := r.api.Loop.Start(ctx, q, in)
	if err == nil && !out.started() { // the key names an earlier run, which sends no updates here
		out.write(statusLine{"status", run.Planning, v.RunID, v.ThreadID})
	}
	if err == nil && v.Moving {
		v = r.follow(ctx, out, v)
	}
	if err != nil && !out.started() {
		return nil, err
	}
	stop()
	r.conclude(ctx, out, v, err)
	return nil, nil
}

// conclude writes the final line.
func (r *request) conclude(ctx context.Context, out *jsonStream, v *run.View, err error) {
	var answer runAnswer
	if err == nil {
		obs.SetRun(ctx, v.RunID)
		answer, err = r.api.withApprovals(ctx, r.uid, v)
	}
	switch {
	case err != nil:
		body, f := r.api.errorBody(ctx, err)
		r.api.Log.ErrorContext(ctx, "a stream ended in an error", "class", f.Class, "code", f.Code, "error", err)
		out.write(errorLine{"error", f.Message, f.Class, f.Code, body.RequestID, "", nil})
	case v.Status == run.Failed:
		out.write(errorLine{"error", v.Message, v.ErrorCode, v.ErrorReason, obs.RequestID(ctx), v.RunID, &answer})
	default:
		out.write(resultLine{"result", answer})
	}
}

// getEvents sends a run's numbered events after number N. It stays live until the run ends or the function's time is
// up. A client that reconnects with the last number that it saw misses none. While nothing happens, the stream costs
// only its pings.
func getEvents(r *request) (any, error) {
	id, err := r.id("runId")
	if err != nil {
		return nil, err
	}
	after, err := r.number("after", 0, 0, 1<<53)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), r.api.Budget)
	defer cancel()
	_, _, err = r.sendEvents(ctx, &jsonStream{w: r.w, format: ndjson, lost: cancel}, id, after)
	return nil, err
}

// sendEvents sends a run's events whose numbers exceed after, and the output of its actions between them, until the run
// or ctx ends. It returns the number of the last event sent, and whether the run has ended. It returns an error only
// before the first line; a later one is logged and ends the stream.
func (r *request) sendEvents(ctx context.Context, out *jsonStream, id string, after int64) (last int64, ended bool,
	err error) {
	printed, err := r.outputs(out, id)
	if err != nil {
		return after, false, err
	}
	defer printed.stop()
	defer out.pings()()
	defer time.AfterFunc(firstLine, func() {
		if !out.started() {
			out.lost()
		}
	}).Stop()
	for w, err := range r.api.Loop.Watch(ctx, r.uid, id) {
		var views []run.EventView
		if err == nil {
			views, err = w.Events(after)
		}
		switch {
		case err != nil && !out.started():
			return after, false, err
		case err != nil: // the client reconnects with the last number it saw
			r.warn(ctx, "a stream of events was cut off", err, "runId", id)
			return after, false, nil
		}
		for _, e := range views {
			if err := printed.before(ctx, w, e); err != nil {
				r.warn(ctx, "a stream of events was cut off", err, "runId", id)
				return after, false, nil
			}
			out.write(e)
			after = e.Seq
		}
		if !out.started() {
			out.send(out.ping)
		}
		printed.follow(ctx, w)
		if w.Ended() {
			return after, true, nil
		}
	}
	if !out.started() {
		return after, false, fault.Unavailable("This could not be read in time. Please try again.", ctx.Err())
	}
	return after, false, nil
}
