package embedded

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/countersign-run/countersign/shared/store"
)

// A group lets commits that arrive together share a transaction, without a goroutine of its own: the caller at the head
// of the queue leads. It writes its own commit and those that wait behind it, tells their callers, and leaves the lead
// to the next in the queue. A single caller therefore never waits, and the more callers there are, the fewer syncs each
// costs.
type group struct {
	mu    sync.Mutex
	queue []*member // in the order of arrival
	led   bool      // one of the callers leads
}

// A member is a commit in the queue.
type member struct {
	*commit
	turn  chan struct{} // receives once when the member has its outcome, and once when it is to lead
	done  bool          // it has its outcome; under the group's lock until turn has received
	leads bool          // it is to lead; under the group's lock
	gone  bool          // its caller no longer waits; under the group's lock
	alone bool          // it was in a transaction that failed, and is written by itself, so that the failure is its own
	err   error
}

// The bounds of one transaction, beyond its first commit.
const (
	mostWrites = store.MaxWrites
	mostBytes  = store.MaxCommit
)

// writeTogether writes a transaction. take returns the commits that it is to hold, and is called once the file is
// locked, if it ever is. An error before that is the leader's alone.
type writeTogether func(ctx context.Context, take func() []*member) error

var errLost = errors.New("embedded store: the commit was lost on its way to the file")

// join has the commit written, by this caller or by another, and returns its outcome.
func (g *group) join(ctx context.Context, c *commit, write writeTogether) error {
	m := &member{commit: c, turn: make(chan struct{}, 2)}
	g.enter(m)
	for {
		select {
		case <-m.turn:
		case <-ctx.Done():
			if !g.leave(m) {
				return ctx.Err()
			}
		}
		if g.finished(m) {
			return m.err
		}
		g.lead(ctx, m, write)
	}
}

func (g *group) enter(m *member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue = append(g.queue, m)
	if !g.led {
		g.appoint()
	}
}

// appoint makes the head of the queue the leader. The lock is held.
func (g *group) appoint() {
	g.led = len(g.queue) > 0
	if g.led {
		g.queue[0].leads = true
		g.queue[0].turn <- struct{}{}
	}
}

// leave takes the member out of the queue, because its caller no longer waits. It reports whether the member has its
// outcome already.
func (g *group) leave(m *member) (done bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.done {
		return true
	}
	m.gone = true
	g.queue = slices.DeleteFunc(g.queue, func(other *member) bool { return other == m })
	if m.leads {
		g.appoint()
	}
	return false
}

func (g *group) finished(m *member) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return m.done
}

// lead writes one transaction, whose first commit is the leader's, and leaves the lead to the next in the queue.
func (g *group) lead(ctx context.Context, leader *member, write writeTogether) {
	// On one core, no other goroutine runs until the leader is done, so the others get the chance to queue first. On
	// several cores they run anyway, and yielding would mean waiting for another thread.
	if runtime.GOMAXPROCS(0) == 1 {
		runtime.Gosched()
	}
	var taken []*member
	err := errLost // stays where the driver panics
	defer func() {
		if taken == nil {
			taken = g.take(1)
		}
		g.settle(leader, taken, err)
	}()
	err = write(ctx, func() []*member {
		taken = g.take(mostWrites)
		return taken
	})
}

// take takes the head of the queue, and those behind it that fit into one transaction with it.
func (g *group) take(most int) []*member {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, writes, bytes := 0, 0, 0
	for i, m := range g.queue {
		writes, bytes = writes+len(m.writes), bytes+m.size
		if i > 0 && (writes > most || bytes > mostBytes || m.alone || g.queue[0].alone) {
			break
		}
		n++
	}
	taken := g.queue[:n:n]
	g.queue = g.queue[n:]
	return taken
}

// settle gives the members of a transaction their outcomes. If the transaction failed and had several, they go back to
// the head of the queue, to be written each by itself.
func (g *group) settle(leader *member, taken []*member, failed error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	leader.leads = false
	if failed == errLost { // its caller is about to panic
		leader.gone = true
	}
	var again []*member
	for _, m := range taken {
		switch {
		case failed != nil && len(taken) > 1:
			m.alone, m.err = true, nil
			if !m.gone {
				again = append(again, m)
			}
			continue
		case failed != nil:
			m.err = failed
		}
		m.done = true
		m.turn <- struct{}{}
	}
	g.queue = append(again, g.queue...)
	g.appoint()
}
