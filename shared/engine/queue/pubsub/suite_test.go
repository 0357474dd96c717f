package pubsub_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/queue/pubsub"
	"github.com/countersign-run/countersign/shared/engine/queue/queuetest"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
)

func TestConformanceOnTheEmulator(t *testing.T) {
	t.Setenv("PUBSUB_EMULATOR_HOST", emulators.PubSub(t))
	queuetest.Run(t, queuetest.Suite{
		Open:       backend,
		Redelivers: 60 * time.Second, // 12 s were seen; the rest is for a busy machine
		Quiet:      2 * time.Second,
	})
}

// backend returns a topic of its own, with a subscription that pushes to a server of the test.
func backend(t *testing.T) queuetest.Backend {
	consumers := &consumers{}
	srv := httptest.NewServer(consumers)
	t.Cleanup(srv.Close)
	topic := "resume-" + rand.Text()
	if err := pubsub.Emulate(t.Context(), "demo", topic, srv.URL+"/"+rand.Text()); err != nil {
		t.Fatal(err)
	}
	return queuetest.Backend{Queue: open(t, topic), Consume: consumers.add}
}

// consumers are the instances of the function behind one push address. They take turns.
type consumers struct {
	mu    sync.Mutex
	alive []*consumer
	turn  int
}

type consumer struct {
	push queuetest.Push
	dead context.Context
}

func (c *consumers) add(t *testing.T, push queuetest.Push) (kill func()) {
	dead, cancel := context.WithCancel(context.Background())
	one := &consumer{push, dead}
	c.mu.Lock()
	c.alive = append(c.alive, one)
	c.mu.Unlock()
	t.Cleanup(cancel)
	return cancel
}

// next returns the consumer whose turn it is, or nil if none is alive.
func (c *consumers) next() *consumer {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range c.alive {
		c.turn = (c.turn + 1) % len(c.alive)
		if one := c.alive[c.turn]; one.dead.Err() == nil {
			return one
		}
	}
	return nil
}

func (c *consumers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	one := c.next()
	if one == nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(one.dead, cancel)()
	pubsub.Relay(func(_ context.Context, envelope []byte) error {
		err := one.push(ctx, envelope)
		if one.dead.Err() != nil {
			panic(http.ErrAbortHandler) // a process that died sends no answer: the connection breaks
		}
		return err
	}).ServeHTTP(w, r)
}

func TestEmulateAgain(t *testing.T) {
	t.Setenv("PUBSUB_EMULATOR_HOST", emulators.PubSub(t))
	topic := "resume-" + rand.Text()
	if err := pubsub.Emulate(t.Context(), "demo", topic, "http://127.0.0.1:1/"); err != nil {
		t.Fatal(err)
	}
	arrived := make(chan string, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { arrived <- r.URL.Path }))
	defer srv.Close()
	if err := pubsub.Emulate(t.Context(), "demo", topic, srv.URL+"/new"); err != nil {
		t.Fatal(err)
	}
	if err := open(t, topic).Resume(t.Context(), queue.Message{RunID: run}); err != nil {
		t.Fatal(err)
	}
	select {
	case path := <-arrived:
		if path != "/new" {
			t.Errorf("pushed to %s", path)
		}
	case <-time.After(await.Most):
		t.Error("nothing was pushed to the new address")
	}
}
