package load

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/engine/queue"
	queueembedded "github.com/countersign-run/countersign/shared/engine/queue/embedded"
	"github.com/countersign-run/countersign/shared/testkit"
)

// relay is the part of Pub/Sub that calls the resume function. It pushes a queue's messages with Google's token, and
// signals the goroutines that wait for a run.
type relay struct {
	url    string // URL that queues push to
	copies int    // number of deliveries of each message; set before use
	cloud  *testkit.Cloud
	resume queueembedded.Push

	mu       sync.Mutex
	bearer   string
	signed   time.Time
	waiting  map[string]chan struct{} // closed at the run's next acknowledged message; by run
	accepted int
	refused  int
	failures map[string]int // number of failed deliveries, by message
	order    []string       // the runs in the order of their first acknowledged message
	seen     map[string]bool
}

func newRelay(c *testkit.Cloud, base, url string) *relay {
	r := &relay{url: url, copies: 1, cloud: c, waiting: map[string]chan struct{}{}, failures: map[string]int{},
		seen: map[string]bool{}}
	r.resume = queueembedded.HTTPPush(base+"/api/agent/resume", r.token, http.DefaultClient)
	return r
}

// token returns the push token. It signs a new one each minute; Google's are valid for an hour.
func (r *relay) token(ctx context.Context) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.signed) < time.Minute {
		return r.bearer, nil
	}
	t, err := r.cloud.PushToken(ctx)
	if err == nil {
		r.bearer, r.signed = t, time.Now()
	}
	return t, err
}

// push delivers copies of a message, two at a time. It succeeds if one of them is acknowledged.
func (r *relay) push(ctx context.Context, envelope []byte) error {
	if r.copies == 1 {
		return r.pushOne(ctx, envelope)
	}
	errs := make([]error, r.copies)
	var pushes sync.WaitGroup
	slots := make(chan struct{}, 2)
	for i := range errs {
		slots <- struct{}{}
		pushes.Go(func() { errs[i] = r.pushOne(ctx, envelope); <-slots })
	}
	pushes.Wait()
	for _, err := range errs {
		if err == nil {
			return nil
		}
	}
	return errors.Join(errs...)
}

func (r *relay) pushOne(ctx context.Context, envelope []byte) error {
	err := r.resume(ctx, envelope)
	d, bad := queue.ParsePush(envelope, "")
	if bad != nil {
		return bad
	}
	var e struct {
		Message struct {
			ID string `json:"messageId"`
		} `json:"message"`
	}
	if bad := json.Unmarshal(envelope, &e); bad != nil {
		return bad
	}
	r.note(d.RunID, e.Message.ID, err == nil)
	return err
}

func (r *relay) note(runID, messageID string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !ok {
		r.refused++
		r.failures[messageID]++
		return
	}
	r.accepted++
	delete(r.failures, messageID)
	if !r.seen[runID] {
		r.seen[runID], r.order = true, append(r.order, runID)
	}
	if c := r.waiting[runID]; c != nil {
		close(c)
		delete(r.waiting, runID)
	}
}

// next returns a channel that is closed when the next message about the run is acknowledged.
func (r *relay) next(runID string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.waiting[runID]
	if c == nil {
		c = make(chan struct{})
		r.waiting[runID] = c
	}
	return c
}

func (r *relay) counts() (all, refused int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepted + r.refused, r.refused
}

// deadLetters returns the number of messages that Pub/Sub would have given up.
func (r *relay) deadLetters() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, failed := range r.failures {
		if failed >= queueembedded.PoisonAttempts {
			n++
		}
	}
	return n
}
