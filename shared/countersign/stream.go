package countersign

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// stream yields the events of a run that it advances. The run advances on its own goroutine, so that a slow loop body
// delays neither a lease nor a connection. Decisions are requested, and events yielded, on the caller's goroutine.
// The other goroutine ends before the sequence does.
func (s *Session) stream(ctx context.Context, prepare func(context.Context) (*move, error)) iter.Seq2[Event, error] {
	var ranged atomic.Bool
	return func(yield func(Event, error) bool) {
		if ranged.Swap(true) {
			yield(nil, public(fault.New(fault.Validation, "stream_used",
				"This stream was already consumed; send again, or call Continue.")))
			return
		}
		if err := s.agent.usable(); err != nil {
			yield(nil, err)
			return
		}
		ctx, stop := s.agent.core.bound(ctx)
		defer stop()
		m, err := prepare(ctx)
		if err != nil {
			yield(nil, why(ctx, err))
			return
		}
		if res, err, yielded := m.follow(ctx, yield); err != nil {
			yield(nil, err)
		} else if yielded {
			yield(&Finished{*res}, nil)
		}
	}
}

// follow advances the run and yields its events until it rests. It reports false if the caller left the loop.
func (m *move) follow(ctx context.Context, yield func(Event, error) bool) (res *Result, err error, yielded bool) {
	for {
		q := newEventQueue()
		if m.invoked != "" {
			q.events, m.invoked = append(q.events, &SkillActivated{Skill: m.invoked}), ""
		}
		v, err, all := m.stepConcurrently(ctx, q, yield)
		switch {
		case !all:
			return nil, nil, false
		case q.paused && ctx.Err() == nil:
			continue
		case m.left(ctx, v, err):
			return nil, m.failed(ctx, err), true
		}
		r, err := m.decideOpen(ctx, v, func(a Approval, seq int64) bool {
			all = yield(&Asked{Seq: seq, Approval: a}, nil)
			return all
		})
		switch {
		case !all:
			return nil, nil, false
		case err != nil:
			return nil, why(ctx, err), true
		case !r.more:
			res, err := m.result(r)
			return res, err, true
		}
	}
}

// stepConcurrently moves the run on its own goroutine, yields its events, and reports false if the caller left the
// loop. It returns when that goroutine has ended.
func (m *move) stepConcurrently(ctx context.Context, q *eventQueue, yield func(Event, error) bool) (
	v *run.View, err error, all bool) {
	ctx, q.stop = context.WithCancel(withQueue(ctx, q))
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer q.close()
		v, err = m.step(ctx, q.put)
	}()
	all = q.each(func(e Event) bool { return yield(e, nil) })
	q.leave(all)
	<-done
	q.stop()
	if q.paused { // this is not an error of the run
		err = nil
	}
	return v, err, all
}

// eventQueue holds the events that the loop's body has not received yet.
type eventQueue struct {
	stop context.CancelFunc // detaches from the run
	some chan struct{}      // has a value if there may be a new event
	took chan struct{}      // has a value if an event was taken

	mu     sync.Mutex
	events []Event
	closed bool
	left   bool             // the consumer has left the loop
	intent map[string]int64 // the numbers of the events that began calls
	paused bool             // the body was too slow, so the stream detached from the run
	badOut map[string]error // by action: the call's result cannot be encoded as JSON
}

func newEventQueue() *eventQueue {
	return &eventQueue{some: make(chan struct{}, 1), took: make(chan struct{}, 1), intent: map[string]int64{},
		badOut: map[string]error{}}
}

// put adds an update of the run.
func (q *eventQueue) put(u unit.Update) {
	q.mu.Lock()
	if a := u.Action; a != nil && u.Seq > 0 && a.Status == run.ActionExecuting {
		q.intent[a.ActionID] = u.Seq
	}
	if e := q.eventOf(u); e != nil && !q.left {
		q.add(e)
		if s := activated(e); s != nil {
			q.add(s)
		}
	}
	q.mu.Unlock()
	signal(q.some)
}

// add appends an event. It joins pieces of text that wait.
func (q *eventQueue) add(e Event) {
	if text, ok := e.(*Text); ok && len(q.events) > 0 {
		if last, ok := q.events[len(q.events)-1].(*Text); ok {
			q.events[len(q.events)-1] = &Text{last.Delta + text.Delta}
			return
		}
	}
	q.events = append(q.events, e)
}

// eventOf returns the event of an update, or nil.
func (q *eventQueue) eventOf(u unit.Update) Event {
	switch {
	case u.Thought != "":
		return &Thought{u.Thought}
	case u.Delta != "" || u.Beyond != "":
		return &Text{u.Delta + u.Beyond}
	case u.Started != nil:
		return &ToolStarted{q.intent[u.Started.ActionID], u.Started.ActionID, u.Started.Tool,
			slices.Clone(u.Started.Args)}
	case u.Compressed != nil && u.Compressed.After < u.Compressed.Before:
		return &ChatCompressed{u.Seq, u.Compressed.Before, u.Compressed.After}
	case u.Finished != nil:
		f := u.Finished
		err := veryError(f.Err)
		if bad := q.badOut[f.ActionID]; bad != nil {
			err = bad
		}
		return &ToolFinished{u.Seq, f.ActionID, f.Tool, slices.Clone(strictjson.Portable(f.Result)), err, f.Truncated}
	}
	return nil
}

// each passes the events to f as they come, until the queue is closed and empty, or f reports false.
func (q *eventQueue) each(f func(Event) bool) bool {
	for {
		q.mu.Lock()
		closed, events := q.closed, q.events
		if len(events) > 0 {
			q.events = events[1:]
		}
		q.mu.Unlock()
		switch {
		case len(events) > 0:
			if !f(events[0]) {
				return false
			}
			signal(q.took)
		case closed:
			return true
		default:
			<-q.some
		}
	}
}

// leave detaches from the run, unless all of its events were taken.
func (q *eventQueue) leave(all bool) {
	if all {
		return
	}
	q.mu.Lock()
	q.left, q.events = true, nil
	q.mu.Unlock()
	q.stop()
}

func (q *eventQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	signal(q.some)
}

// patience is how long the stream waits for the loop's body to take the events of the last answer, before it calls
// the model again. After that it detaches from the run, and continues when the body has taken the events.
const patience = 2 * time.Second

// await waits until all events were taken, so that the queue holds at most one answer. After patience, or when ctx
// ends, it detaches from the run and reports false.
func (q *eventQueue) await(ctx context.Context) bool {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		q.mu.Lock()
		free := len(q.events) == 0
		q.mu.Unlock()
		if free {
			return true
		}
		select {
		case <-q.took:
		case <-ctx.Done():
			return false
		case <-late.C:
			q.mu.Lock()
			q.paused = true
			q.mu.Unlock()
			q.stop()
			<-ctx.Done()
			return false
		}
	}
}

// signal wakes a receiver of the channel.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

type queueKey struct{}

// withQueue returns a context with which the model finds the stream's queue.
func withQueue(ctx context.Context, q *eventQueue) context.Context {
	return context.WithValue(ctx, queueKey{}, q)
}

// awaitReader waits until the reader of ctx's stream, if there is one, has room for an answer.
func awaitReader(ctx context.Context) error {
	if q, ok := ctx.Value(queueKey{}).(*eventQueue); ok && !q.await(ctx) {
		return context.Cause(ctx)
	}
	return nil
}

// noteResult passes the error of encoding a call's result to ctx's stream, if there is one. An effect with such a
// result is recorded as done.
func noteResult(ctx context.Context, actionID string, err error) {
	if q, ok := ctx.Value(queueKey{}).(*eventQueue); ok {
		q.mu.Lock()
		q.badOut[actionID] = err
		q.mu.Unlock()
	}
}

// veryError returns the original error that a tool's action returned, or else the recorded error.
func veryError(err error) error {
	var recorded *modelError
	if errors.As(err, &recorded) {
		return recorded.very
	}
	return public(err)
}
