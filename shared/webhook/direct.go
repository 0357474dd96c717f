package webhook

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/notice"
)

// Bounds of a Direct.
const (
	giveUpAfter = 24 * time.Hour // since it happened; as long as a topic's subscription keeps it
	mostRuns    = 10_000         // that endpoints are told of at the same time
	mostSends   = 32             // at the same time
)

// Direct tells endpoints of runs in the process that moves these, with no topic in between. Nobody waits for an
// endpoint, and none for another: [Direct.Publish] begins what is to be sent, and until all of that has been taken or
// given up the run stays due and is asked about again, later each time. What was taken is kept in memory, so that it is
// sent once more after a restart.
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
	runs map[string]*telling // those that are not told of in full
}

// A Failure is a notice that an endpoint did not take.
type Failure struct {
	Hook, NoticeID string
	GivenUp        bool // it is not sent again
	Err            error
}

// telling is what becomes of a run's notices.
type telling struct {
	newest time.Time // of them
	lines  []line    // one for each endpoint
}

// line is what an endpoint is told of a run, one after the other.
type line struct {
	left    []notice.Notice
	settled map[string]bool // ids of what was taken or given up
	busy    bool
}

// NewDirect returns a Direct. source is that of its events; failed must be safe for concurrent use.
func NewDirect(hooks Hooks, source string, sender Sender, failed func(Failure)) *Direct {
	alive, end := context.WithCancel(context.Background())
	return &Direct{hooks: hooks, source: source, sender: sender, failed: failed, alive: alive, end: end,
		slots: make(chan struct{}, mostSends), runs: map[string]*telling{}}
}

// Publish implements [notice.Publisher]. It never waits, and returns nil once nothing is left to be sent.
func (d *Direct) Publish(_ context.Context, notices ...notice.Notice) error {
	if len(notices) == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	runID := notices[0].Data.RunID
	t := d.telling(runID)
	if t == nil {
		return notice.ErrUnderWay
	}
	t.newest = notices[len(notices)-1].Time
	left := false
	for i, h := range d.hooks {
		l := &t.lines[i]
		l.left = slices.DeleteFunc(slices.Clone(notices),
			func(n notice.Notice) bool { return l.settled[n.ID] || !h.Wants(n.Type) })
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
		return notice.ErrUnderWay
	}
	delete(d.runs, runID)
	return nil
}

// telling returns that of the run, or nil where there are too many. Of a run that was deleted nobody asks again. The
// lock is held.
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

// send sends what is left of the line, in order, until the endpoint does not take one: those behind it wait with it.
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

func (d *Direct) sendOne(h Hook, n notice.Notice) error {
	event, err := n.Encode(d.source)
	if err != nil {
		return err
	}
	return d.sender.Send(d.alive, h, n.ID, notice.ContentType, event)
}

// first returns the line's first notice, or nil where the line has come to its end.
func (d *Direct) first(l *line) *notice.Notice {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(l.left) == 0 || d.alive.Err() != nil {
		l.busy = false
		return nil
	}
	return &l.left[0]
}

// settle notes what became of a notice, and reports whether the line goes on. A failure stops it, unless it is too late
// to try again.
func (d *Direct) settle(h Hook, l *line, n notice.Notice, err error) bool {
	gone := err == nil || d.old(n.Time)
	if err != nil && d.alive.Err() == nil { // else it is not the endpoint's fault
		d.failed(Failure{h.Name, n.ID, gone, err})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !gone {
		l.busy = false
		return false
	}
	l.settled[n.ID] = true
	l.left = slices.DeleteFunc(slices.Clone(l.left), func(m notice.Notice) bool { return m.ID == n.ID })
	return true
}

// Close ends what is being sent.
func (d *Direct) Close() error {
	d.mu.Lock()
	d.end() // nothing begins any more
	d.mu.Unlock()
	d.sends.Wait()
	return nil
}
