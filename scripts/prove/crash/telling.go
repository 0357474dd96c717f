package crash

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/notify/event"
	"github.com/countersign-run/countersign/shared/testkit/invariants"
)

// taking is what a topic does with a publish of events.
type taking string

const (
	taken    taking = "accepted"
	lost     taking = "lost"
	partly   taking = "only the first event is accepted"
	unsaid   taking = "accepted, and the answer is lost"
	doubled  taking = "accepted twice"
	overtook taking = "the answer is lost, and it is accepted after the next one"
)

// takings is the sequence of outcomes, so that every trial meets some of them.
var takings = []taking{taken, lost, taken, unsaid, taken, overtook, partly, taken, doubled}

// topic receives the events about runs, and outlives the workers.
type topic struct {
	mu    sync.Mutex
	heard []invariants.Heard
	late  []invariants.Heard
	asked int
}

// separator separates the events of a request. Each event is JSON on one line.
var separator = []byte("\n")

// ServeHTTP stores the events of a request, as far as the next of the takings lets them through.
func (p *topic) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil { // the worker was killed while it sent the request
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var all []invariants.Heard
	for event := range bytes.SplitSeq(body, separator) {
		all = append(all, invariants.Heard(event))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	how := takings[p.asked%len(takings)]
	p.asked++
	late := p.late
	p.late = nil
	switch how {
	case lost:
	case partly:
		p.heard = append(p.heard, all[0])
	case overtook:
		p.late = all
	case doubled:
		p.heard = append(append(p.heard, all...), all...)
	default:
		p.heard = append(p.heard, all...)
	}
	p.heard = append(p.heard, late...)
	if how != taken && how != doubled {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// all returns the received events, in order.
func (p *topic) all() []invariants.Heard {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard[:len(p.heard):len(p.heard)]
}

// struckNotices publishes to the topic, with points around each publish.
type struckNotices struct {
	topic   string // its URL
	console string
	client  *http.Client
	*points
}

// Publish implements [event.Publisher].
func (n struckNotices) Publish(ctx context.Context, notices ...event.Event) error {
	defer n.around("telling")()
	var events [][]byte
	for _, one := range notices {
		event, err := one.Encode(n.console)
		if err != nil {
			return err
		}
		events = append(events, event)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.topic, bytes.NewReader(bytes.Join(events, separator)))
	if err != nil {
		return err
	}
	r.GetBody = nil // net/http must not resend the request
	res, err := n.client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	return nil
}

// judgeTold compares the events that the topic received with the runs' events.
func (t *trial) judgeTold() {
	heard := t.env.topic.all()
	for _, id := range t.runs[:t.started()] {
		found, err := invariants.Told(t.ctx, t.env.store, id, t.env.settings["PUBLIC_URL"], heard)
		proof.Must(err)
		for _, v := range found {
			t.problem("%v", v)
		}
	}
}

// told reports whether all events of the run have been published.
func (t *trial) told(runID string) bool {
	left, err := invariants.Untold(t.ctx, t.env.store, runID)
	proof.Must(err)
	return !left
}
