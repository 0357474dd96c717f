package invariants

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/notify/event"
	"github.com/countersign-run/countersign/shared/store"
)

// Received is a notification as a receiver got it: a CloudEvent in JSON.
type Received []byte

// Notifications compares the received notifications, in order, with the run's events. Each notification that follows
// from an event must have arrived, in order and with the same bytes each time, and no other.
func Notifications(ctx context.Context, st store.Store, runID, console string,
	received []Received) ([]Violation, error) {
	c, err := readEvents(ctx, st, runID)
	if err != nil {
		return nil, err
	}
	all := event.After(0, c.run, c.state, c.events, console)
	next := 0
	for _, h := range received {
		var got struct{ ID, Subject string }
		if err := json.Unmarshal(h, &got); err != nil {
			return nil, err
		}
		if got.Subject != runID {
			continue
		}
		n := 0
		for n < len(all) && all[n].ID != got.ID {
			n++
		}
		if n == len(all) {
			c.violates(Telling, "others were notified of %s, which is not an event of the run", got.ID)
			continue
		}
		want, err := all[n].Encode(console)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(want, h) {
			c.violates(Telling, "others heard\n%s\nand it is\n%s", h, want)
		}
		if n > next {
			c.violates(Telling, "others heard of %s before %s", got.ID, all[next].ID)
		}
		next = max(next, n+1)
	}
	for _, n := range all[next:] {
		c.violates(Telling, "others have not heard of %s (%s)", n.ID, n.Type)
	}
	return c.found, nil
}

// Unpublished reports whether the run has unpublished notifications.
func Unpublished(ctx context.Context, st store.Store, runID string) (bool, error) {
	c, err := readEvents(ctx, st, runID)
	if err != nil {
		return false, err
	}
	return event.Publishes(c.run.Delivered, c.state, c.events), nil
}

// readEvents reads a run with its events, and returns the notifications that follow from them.
func readEvents(ctx context.Context, st store.Store, runID string) (*checked, error) {
	c := &checked{approvals: map[string]run.Approval{}}
	if err := c.read(ctx, st, runID); err != nil {
		return nil, err
	}
	state, err := run.Fold(c.events)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", runID, err)
	}
	c.state = state
	return c, nil
}
