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

// publishOutcome is the way in which a topic handles a publish of events.
type publishOutcome string

const (
	taken    publishOutcome = "accepted"
	lost     publishOutcome = "lost"
	partly   publishOutcome = "only the first event is accepted"
	unsaid   publishOutcome = "accepted, and the answer is lost"
	doubled  publishOutcome = "accepted twice"
	overtook publishOutcome = "the answer is lost, and it is accepted after the next one"
)

// publishOutcomes is the sequence of outcomes, so that every trial meets some of them.
var publishOutcomes = []publishOutcome{taken, lost, taken, unsaid, taken, overtook, partly, taken, doubled}

// topic receives the events about runs, and outlives the workers.
type topic struct {
	mu       sync.Mutex
	received []invariants.Received
	late     []invariants.Received
	asked    int
}

// separator separates the events of a request. Each event is JSON on one line.
var separator = []byte("\n")

// ServeHTTP stores the events of a request, up to the number that the next outcome allows.
func (p *topic) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil { // the worker was killed while it sent the request
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var all []invariants.Received
	for event := range bytes.SplitSeq(body, separator) {
		all = append(all, invariants.Received(event))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	how := publishOutcomes[p.asked%len(publishOutcomes)]
	p.asked++
	late := p.late
	p.late = nil
	switch how {
	case lost:
	case partly:
		p.received = append(p.received, all[0])
	case overtook:
		p.late = all
	case doubled:
		p.received = append(append(p.received, all...), all...)
	default:
		p.received = append(p.received, all...)
	}
	p.received = append(p.received, late...)
	if how != taken && how != doubled {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// all returns the received events, in order.
func (p *topic) all() []invariants.Received {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.received[:len(p.received):len(p.received)]
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

// checkEvents compares the events that the topic received with the runs' events.
func (t *trial) checkEvents() {
	received := t.env.topic.all()
	for _, id := range t.runs[:t.started()] {
		found, err := invariants.Notifications(t.ctx, t.env.store, id, t.env.settings["PUBLIC_URL"], received)
		proof.Must(err)
		for _, v := range found {
			t.problem("%v", v)
		}
	}
}

// published reports whether all events of the run have been published.
func (t *trial) published(runID string) bool {
	left, err := invariants.Unpublished(t.ctx, t.env.store, runID)
	proof.Must(err)
	return !left
}
