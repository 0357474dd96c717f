package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/queue/embedded"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// TestDeliverRandomHistories runs random histories of two processes on one store that send, succeed, fail and die in
// the middle of a push. In each of them, a message that was not acknowledged is delivered in the end, and one that was
// is not delivered again (unless the process died before it could record that).
func TestDeliverRandomHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, st := newClock(), newMemory(t)
		ids := counter()
		open := func() (*embedded.Queue, *faulty.Store) {
			mine := faulty.Wrap(st)
			return embedded.New(mine, embedded.Options{Now: c.now, ID: ids}), mine
		}
		owed := map[string]bool{}
		asked := 0
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) {
				asked++
				id := fmt.Sprintf("run_%016d", asked)
				q, _ := open()
				if err := q.Resume(context.Background(), queue.Message{RunID: id}); err != nil {
					t.Fatal(err)
				}
				owed[id] = true
			},
			"time passes": func(t *rapid.T) {
				c.add(time.Duration(rapid.Int64Range(0, int64(20*time.Minute)).Draw(t, "for")))
			},
			"deliver": func(t *rapid.T) {
				q, wire := open()
				died := false
				_, err := q.Deliver(context.Background(), func(_ context.Context, envelope []byte) error {
					d, err := queue.ParsePush(envelope, "")
					if err != nil {
						t.Fatal(err)
					}
					id := d.RunID
					if !owed[id] {
						t.Fatalf("%s came again after it was acknowledged", id)
					}
					switch rapid.SampledFrom([]string{"succeeds", "fails", "dies"}).Draw(t, "push") {
					case "fails":
						return errors.New("failed")
					case "dies":
						died = true
						cut(wire)
						return nil
					}
					delete(owed, id)
					return nil
				})
				if err != nil && !died {
					t.Fatal(err)
				}
			},
		})
		c.add(embedded.AckDeadline + embedded.MaxBackoff)
		q, _ := open()
		for n := 1; n > 0; {
			var err error
			n, err = q.Deliver(context.Background(), func(_ context.Context, envelope []byte) error {
				d, err := queue.ParsePush(envelope, "")
				delete(owed, d.RunID)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(owed) > 0 {
			t.Fatalf("lost: %v", owed)
		}
		c.add(time.Hour)
		if n, err := q.Deliver(context.Background(), acks); n != 0 || err != nil {
			t.Fatalf("%d messages are left, %v", n, err)
		}
	})
}
