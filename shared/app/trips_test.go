package app_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/firestore"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
)

// trips are the round trips of one step: reads, where concurrent reads count as one, and commits with their documents.
type trips struct{ reads, read, commits, written, published int }

// wire counts what Firestore's client sends.
type wire struct {
	mu       sync.Mutex
	count    trips
	calls    []string
	underway int           // reads
	another  chan struct{} // closed when another read begins meanwhile
}

// together is how long a read waits for another one that should be concurrent.
const together = 150 * time.Millisecond

func (w *wire) options() []option.ClientOption {
	return []option.ClientOption{option.WithGRPCDialOption(grpc.WithChainUnaryInterceptor(w.unary)),
		option.WithGRPCDialOption(grpc.WithChainStreamInterceptor(w.stream))}
}

func (w *wire) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker,
	opts ...grpc.CallOption) error {
	w.mu.Lock()
	w.calls = append(w.calls, path.Base(method))
	w.count.commits++
	if commit, ok := req.(*pb.CommitRequest); ok {
		w.count.written += len(commit.GetWrites())
	}
	w.mu.Unlock()
	return next(ctx, method, req, reply, cc, opts...)
}

func (w *wire) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
	next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	another := w.begins(path.Base(method)) // before anything that waits for the network
	s, err := next(ctx, desc, cc, method, opts...)
	return &reading{ClientStream: s, wire: w, another: another}, err
}

// begins records a read, and returns a channel that closes when another read begins meanwhile.
func (w *wire) begins(call string) (another chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, call)
	if w.underway++; w.underway == 1 {
		w.count.reads++
		w.another = make(chan struct{})
	} else {
		close(w.another)
	}
	return w.another
}

// reading is a read in progress.
type reading struct {
	grpc.ClientStream
	wire    *wire
	another chan struct{}
}

func (r *reading) RecvMsg(m any) error {
	err := r.ClientStream.RecvMsg(m)
	if err == nil {
		r.wire.mu.Lock()
		r.wire.count.read++
		r.wire.mu.Unlock()
		return nil
	}
	if errors.Is(err, io.EOF) {
		select {
		case <-r.another:
		case <-time.After(together):
		}
	}
	r.wire.mu.Lock()
	defer r.wire.mu.Unlock()
	r.wire.underway--
	return err
}

func (w *wire) take() (trips, []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	count, calls := w.count, w.calls
	w.count, w.calls = trips{}, nil
	return count, calls
}

// outbox is a queue whose messages a test delivers.
type outbox struct {
	mu       sync.Mutex
	messages []queue.Message
}

func (o *outbox) Resume(_ context.Context, m queue.Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.messages = append(o.messages, m)
	return nil
}

func (o *outbox) Close() error { return nil }

func (o *outbox) take() []queue.Message {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.messages
	o.messages = nil
	return taken
}

// metered is Countersign over Firestore's emulator, with actions and tools that act in a linked account. Every call to
// Firestore is counted.
type metered struct {
	*proved
	wire   *wire
	outbox *outbox
}

func newMetered(t *testing.T) *metered {
	t.Helper()
	t.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(t))
	c := &metered{wire: &wire{}, outbox: &outbox{}}
	open := app.Embedded
	app.Embedded = func(string, func() time.Time) (store.Store, error) {
		return firestore.Open(t.Context(), "demo-"+strings.ToLower(rand.Text()[:20]), "", c.wire.options()...)
	}
	defer func() { app.Embedded = open }()
	c.proved = withActions(t, newEndpoint(t))
	c.App.API.Loop.Queue = c.outbox
	return c
}

// as returns the client of a user, without linking an account.
func (c *metered) as(uid string) testkit.Client {
	token, err := c.Token(uid)
	if err != nil {
		c.t.Fatal(err)
	}
	return testkit.Connect(nil, c.Base, token)
}

// deliver pushes the messages to the resume function.
func (c *metered) push() {
	c.t.Helper()
	for i, m := range c.outbox.take() {
		if err := c.Push(c.Base)(c.t.Context(), queue.Envelope(m, fmt.Sprint(i), 1, time.Now())); err != nil {
			c.t.Fatal(err)
		}
	}
}

// does counts what do uses.
func (c *metered) does(step string, want trips, do func()) {
	c.t.Helper()
	c.wire.take()
	do()
	got, calls := c.wire.take()
	c.outbox.mu.Lock()
	got.published = len(c.outbox.messages)
	c.outbox.mu.Unlock()
	if got != want {
		c.t.Errorf("%s: %+v, promised %+v\n%v", step, got, want, calls)
	}
}

// ok fails the test unless the answer is 200 with the status.
func (c *metered) ok(a testkit.Answer, err error) func(status string) testkit.Answer {
	return func(status string) testkit.Answer {
		c.t.Helper()
		if err != nil || a.HTTP != http.StatusOK || a.Status != status {
			c.t.Fatalf("%v %d %s, want %s", err, a.HTTP, a.Body, status)
		}
		return a
	}
}

// TestRoundTrips counts, at Firestore's client, the round trips of each API request and each resume message: the
// figures in scripts/prove/README.md. One more round trip or document needs a reason.
func TestRoundTrips(t *testing.T) {
	c := newMetered(t)
	ctx := t.Context()
	if err := c.Link(ctx, "ana", "ana"); err != nil {
		t.Fatal(err)
	}
	for _, who := range []struct {
		uid   string
		tools map[string]func()
	}{
		{"bob", map[string]func(){"action": c.action}},
		{"ana", map[string]func(){"action": c.action, "mail": c.mail, "event": c.event}},
	} {
		user := c.as(who.uid)
		t.Run(map[string]string{"bob": "no account", "ana": "linked"}[who.uid], func(t *testing.T) {
			c.proved.t = t
			c.SetModel(testkit.Says("Hello."))
			var first testkit.Answer
			c.does("new thread", trips{1, 2, 2, 6, 0}, func() { first = c.ok(user.Ask(ctx, "hello"))("completed") })
			c.does("existing thread", trips{1, 3, 2, 6, 0}, func() {
				c.ok(user(ctx, "POST", "/api/agent/run",
					map[string]string{"prompt": "again", "threadId": first.ThreadID}))("completed")
			})
			for name, wants := range who.tools {
				c.trip(name, user, wants)
			}
		})
	}
}

// action makes the model request a declared action.
func (c *metered) action() {
	c.SetModel(testkit.Wants("action_cart_add", json.RawMessage(`{"id":"mug"}`)))
}

// trip requests an effect, approves it, and executes it. It does so twice, so the second time has a cached access
// token.
func (c *metered) trip(tool string, user testkit.Client, wants func()) {
	c.t.Helper()
	ctx := c.t.Context()
	wants()
	resume := map[string]trips{"action": {1, 4, 3, 7, 0}, "event": {1, 4, 3, 8, 0}, "mail": {1, 4, 4, 10, 0}}[tool]
	for range 2 {
		var r testkit.Answer
		c.does(tool+", stop for approval", trips{1, 2, 2, 8, 0}, func() {
			r = c.ok(user.Ask(ctx, "do it"))("awaiting_confirmation")
		})
		c.does(tool+", pending", trips{1, 2, 0, 0, 0}, func() {
			if a, err := user.Pending(ctx); err != nil || len(a.Approvals) != 1 {
				c.t.Fatalf("%v %s; want len(a.Approvals) 1", err, a.Body)
			}
		})
		c.does(tool+", get a run that waits", trips{1, 4, 0, 0, 0}, func() {
			if a := c.ok(user.Run(ctx, r.RunID))("awaiting_confirmation"); len(a.Approvals) != 1 {
				c.t.Fatalf("%s; want len(a.Approvals) 1", a.Body)
			}
		})
		c.does(tool+", approve", trips{1, 4, 1, 4, 1}, func() {
			c.ok(user.Resolve(ctx, r.Approvals[0], "approve_once"))("executing")
		})
		c.does(tool+", resume", resume, c.push)
		c.does(tool+", get a run that has ended", trips{1, 4, 0, 0, 0}, func() {
			a := c.ok(user.Run(ctx, r.RunID))("completed")
			if a.Actions[0].ExecutionStatus != "succeeded" {
				c.t.Fatalf("%s; want a.Actions[0].ExecutionStatus “succeeded”", a.Body)
			}
		})
	}
}
