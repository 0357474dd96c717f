// Package queuetest tests that a queue backend keeps the port's guarantees. A message that Resume accepted arrives at
// least once. It is redelivered until it is acknowledged, even if consumers die, and not afterwards.
package queuetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/queue"
)

// Push handles a push request. A nil error acknowledges it.
type Push = func(ctx context.Context, envelope []byte) error

// Backend is a queue under test, empty at first, with a way to consume its messages.
type Backend struct {
	Queue queue.Queue
	// Consume starts one more consumer, which runs until it is killed or the test ends. kill stops it as kill -9 does:
	// the message that it is handling is neither acknowledged nor returned. A second kill does nothing.
	Consume func(t *testing.T, push Push) (kill func())
}

// Suite configures the tests of a backend.
type Suite struct {
	Open func(t *testing.T) Backend
	// Redelivers is a time within which a message is redelivered, even if its consumer has died. Quiet is a time after
	// which a message that was not redelivered will not be.
	Redelivers, Quiet time.Duration
	// In runs each test, in a bubble of [testing/synctest] if possible. If it is nil, the test runs directly.
	In func(t *testing.T, test func(t *testing.T))
}

// Run runs the suite.
func Run(t *testing.T, s Suite) {
	if s.In == nil {
		s.In = func(t *testing.T, test func(*testing.T)) { test(t) }
	}
	for name, test := range map[string]func(*testing.T, Suite, Backend){
		"what is asked for arrives":                      arrives,
		"a message carries its hints":                    carriesHints,
		"what was asked for before there was a consumer": arrivesLater,
		"a failed push comes again":                      comesAgain,
		"an acknowledged message comes no more":          settles,
		"many runs all arrive":                           manyArrive,
		"a failing run does not hold up the others":      poisonIsAlone,
		"two consumers share the work and lose none":     twoConsumers,
		"a consumer that dies before it acknowledges":    crash,
		"a run id that cannot be delivered":              badRunID,
		"a context that is over":                         deadContext,
	} {
		t.Run(name, func(t *testing.T) {
			s.In(t, func(t *testing.T) { test(t, s, s.Open(t)) })
		})
	}
}

func arrives(t *testing.T, s Suite, b Backend) {
	in := newInbox(nil)
	b.Consume(t, in.push)
	resume(t, b, runID(1))
	in.await(t, s.Redelivers, runID(1))
}

func carriesHints(t *testing.T, s Suite, b Backend) {
	in := newInbox(nil)
	came := make(chan queue.Message, 100)
	b.Consume(t, func(ctx context.Context, envelope []byte) error {
		d, err := queue.ParsePush(envelope, "")
		came <- d.Message
		return errors.Join(err, in.push(ctx, envelope))
	})
	for i, m := range []queue.Message{{}, {Agent: "clerk"}, {UID: "an ä/a", ThreadID: "t1"},
		{Agent: "clerk", UID: "ana", ThreadID: "t1"},
		{UID: "ana", Terminal: "h-1"},
		{UID: "ana", Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}} {
		m.RunID = runID(i + 1)
		if err := b.Queue.Resume(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		in.await(t, s.Redelivers, m.RunID)
		if got := <-came; got != m {
			t.Errorf("the message came as %+v, want %+v", got, m)
		}
	}
}

func arrivesLater(t *testing.T, s Suite, b Backend) {
	resume(t, b, runID(1))
	resume(t, b, runID(2))
	in := newInbox(nil)
	b.Consume(t, in.push)
	in.await(t, s.Redelivers, runID(1), runID(2))
}

func comesAgain(t *testing.T, s Suite, b Backend) {
	in := newInbox(func(_ context.Context, _ string, attempt int) error {
		if attempt <= 2 {
			return errors.New("not yet")
		}
		return nil
	})
	b.Consume(t, in.push)
	resume(t, b, runID(1))
	in.await(t, s.Redelivers, runID(1))
	if n := in.pushes(runID(1)); n < 3 {
		t.Fatalf("acknowledged at push %d, want the third", n)
	}
}

func settles(t *testing.T, s Suite, b Backend) {
	in := newInbox(nil)
	b.Consume(t, in.push)
	resume(t, b, runID(1))
	in.await(t, s.Redelivers, runID(1))
	time.Sleep(s.Quiet)
	before := in.pushes(runID(1))
	time.Sleep(s.Quiet)
	if after := in.pushes(runID(1)); after != before {
		t.Fatalf("%d pushes of an acknowledged message, then %d", before, after)
	}
}

func manyArrive(t *testing.T, s Suite, b Backend) {
	in := newInbox(nil)
	b.Consume(t, in.push)
	ids := runIDs(150) // more than a page of the embedded queue
	for _, id := range ids {
		resume(t, b, id)
	}
	in.await(t, s.Redelivers, ids...)
}

func poisonIsAlone(t *testing.T, s Suite, b Backend) {
	in := newInbox(func(_ context.Context, id string, _ int) error {
		if id == runID(0) {
			return errors.New("never")
		}
		return nil
	})
	b.Consume(t, in.push)
	ids := runIDs(12)
	for _, id := range ids {
		resume(t, b, id)
	}
	in.await(t, s.Redelivers, ids[1:]...)
}

func twoConsumers(t *testing.T, s Suite, b Backend) {
	in := newInbox(func(_ context.Context, _ string, attempt int) error {
		if attempt == 1 {
			return errors.New("try another")
		}
		return nil
	})
	b.Consume(t, in.push)
	b.Consume(t, in.push)
	ids := runIDs(20)
	for _, id := range ids {
		resume(t, b, id)
	}
	in.await(t, s.Redelivers, ids...)
}

func crash(t *testing.T, s Suite, b Backend) {
	began := make(chan struct{}, 100)
	kill := b.Consume(t, func(ctx context.Context, _ []byte) error {
		began <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	resume(t, b, runID(1))
	select {
	case <-began:
	case <-time.After(s.Redelivers):
		t.Fatal("nothing was delivered")
	}
	kill()
	in := newInbox(nil)
	b.Consume(t, in.push)
	in.await(t, s.Redelivers, runID(1))
}

func badRunID(t *testing.T, s Suite, b Backend) {
	in := newInbox(nil)
	b.Consume(t, in.push)
	for _, id := range []string{"", "short", "../runs/0123456789", "0123456789abcdef\n", string(make([]byte, 20))} {
		if err := b.Queue.Resume(t.Context(), queue.Message{RunID: id, Agent: "clerk"}); err == nil ||
			fault.As(err).Class != fault.Validation {
			t.Errorf("Resume(%q): got %v, want a ValidationError", id, err)
		}
	}
	time.Sleep(s.Quiet)
	if all := in.all(); all != 0 {
		t.Fatalf("%d pushes of a refused message", all)
	}
}

func deadContext(t *testing.T, _ Suite, b Backend) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := b.Queue.Resume(ctx, queue.Message{RunID: runID(1), Agent: "clerk"})
	if !fault.Is(err, fault.Tool, fault.CodeStoreUnavailable) || fault.As(err).RetryAfter <= 0 {
		t.Fatalf("got %v, want store_unavailable and when to try again", err)
	}
}

func resume(t *testing.T, b Backend, id string) {
	t.Helper()
	if err := b.Queue.Resume(t.Context(), queue.Message{RunID: id, Agent: "clerk"}); err != nil {
		t.Fatal(err)
	}
}

func runID(n int) string { return fmt.Sprintf("run_%016d", n) }

func runIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = runID(i)
	}
	return ids
}
