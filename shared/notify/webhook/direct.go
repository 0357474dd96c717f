package webhook

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/notify/event"
)

// Limits of Direct.
const (
	giveUpAfter = 24 * time.Hour // since the event; as long as a topic's subscription keeps it
	mostRuns    = 10_000         // runs with notifications in progress
	mostSends   = 32             // concurrent requests
)

// Direct sends notifications about runs to endpoints from the process that advances the runs, without a topic. A slow
// endpoint delays neither callers nor other endpoints. [Direct.Publish] starts the requests. The run stays due until
// all its notifications were delivered or given up, and is published again after longer and longer pauses. Deliveries
// are recorded only in memory, so after a restart they are sent once more.
type Direct struct {
	hooks  Hooks
	source string
	sender Sender
	failed func(Failure)

	alive context.Context
	end   context.CancelFunc
	slots chan struct{}
	sends sync.WaitGroup

	mu   sync.Mutex
	runs map[string]*telling // the runs with notifications that are not settled
}

// A Failure is a notification that an endpoint did not accept.
type Failure struct {
	Hook, NoticeID string
	GivenUp        bool // the notification is not sent again
	Err            error
}

// telling is the state of delivering a run's notifications.
type telling struct {
	newest time.Time // time of the newest notification
	lines  []line    // one for each endpoint
}

// line holds the notifications of a run for one endpoint, in order.
type line struct {
	left    []event.Event
	settled map[string]bool // IDs of notifications that were delivered or given up
	busy    bool
}

// NewDirect returns a Direct. source is the source of its events. failed must be safe for concurrent use.
func NewDirect(hooks Hooks, source string, sender Sender, failed func(Failure)) *Direct {
	alive, end := context.WithCancel(context.Background())
	return &Direct{hooks: hooks, source: source, sender: sender, failed: failed, alive: alive, end: end,
		slots: make(chan struct{}, mostSends), runs: map[string]*telling{}}
}

// Publish implements [event.Publisher]. It never waits. It returns nil once nothing is left to send, and
// event.ErrUnderWay before.
func (d *Direct) Publish(_ context.Context, notices ...event.Event) error {
	if len(notices) == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	runID := notices[0].Data.RunID
	t := d.telling(runID)
	if t == nil {
		return event.ErrUnderWay
	}
	t.newest = notices[len(notices)-1].Time
	left := false
	for i, h := range d.hooks {
		l := &t.lines[i]
		l.left = slices.DeleteFunc(slices.Clone(notices),
			func(n event.Event) bool { return l.settled[n.ID] || !h.Wants(n.Type) })
		if len(l.left) == 0 {
			continue
		}
		left = true
		if !l.busy && d.alive.Err() == nil {
			l.busy = true
			d.sends.Go(func() { d.send(h, l) })
		}
	}
	if left {
		return event.ErrUnderWay
	}
	delete(d.runs, runID)
	return nil
}

// telling returns the delivery state of the run, or nil if too many runs have one. It drops old states, because a
// deleted run is never published again. The caller holds the lock.
func (d *Direct) telling(runID string) *telling {
	if known := d.runs[runID]; known != nil {
		return known
	}
	if len(d.runs) >= mostRuns {
		maps.DeleteFunc(d.runs, func(_ string, t *telling) bool {
			return d.old(t.newest) && !slices.ContainsFunc(t.lines, func(l line) bool { return l.busy })
		})
	}
	if len(d.runs) >= mostRuns {
		return nil
	}
	t := &telling{lines: make([]line, len(d.hooks))}
	for i := range t.lines {
		t.lines[i].settled = map[string]bool{}
	}
	d.runs[runID] = t
	return t
}

func (d *Direct) old(at time.Time) bool { return d.sender.Now().Sub(at) > giveUpAfter }

// send sends the rest of the line in order. It stops at the first notification that the endpoint does not accept.
func (d *Direct) send(h Hook, l *line) {
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-d.alive.Done():
	}
	for n := d.first(l); n != nil; n = d.first(l) {
		if !d.settle(h, l, *n, d.sendOne(h, *n)) {
			return
		}
	}
}

func (d *Direct) sendOne(h Hook, n event.Event) error {
	body, err := n.Encode(d.source)
	if err != nil {
		return err
	}
	return d.sender.Send(d.alive, h, n.ID, event.ContentType, body)
}

// first returns the line's first notification, or nil at the end of the line.
func (d *Direct) first(l *line) *event.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(l.left) == 0 || d.alive.Err() != nil {
		l.busy = false
		return nil
	}
	return &l.left[0]
}

// settle records the result for a notification, and reports whether the next one in the line can be sent. A failed
// notification stops the line, unless its next attempt would be too late. Then it is given up.
func (d *Direct) settle(h Hook, l *line, n event.Event, err error) bool {
	gone := err == nil || d.sender.Now().Add(wait(err)).Sub(n.Time) > giveUpAfter
	if err != nil && d.alive.Err() == nil { // otherwise the failure is not the endpoint's
		d.failed(Failure{h.Name, n.ID, gone, err})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !gone {
		l.busy = false
		return false
	}
	l.settled[n.ID] = true
	l.left = slices.DeleteFunc(slices.Clone(l.left), func(m event.Event) bool { return m.ID == n.ID })
	return true
}

// wait returns how long the endpoint asks to wait.
func wait(err error) time.Duration {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.RetryAfter
	}
	return 0
}

// Close cancels the requests in progress and waits for them.
func (d *Direct) Close() error {
	d.mu.Lock()
	d.end() // nothing begins after this
	d.mu.Unlock()
	d.sends.Wait()
	return nil
}
