package embedded

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/countersign-run/countersign/shared/store"
)

// A group lets commits that arrive together share a transaction, without a goroutine of its own. The caller at the head
// of the queue leads: it writes its own commit and those after it, hands out their outcomes, and makes the next caller
// in the queue the leader. A single caller therefore never waits, and the more callers commit at once, the fewer syncs
// each of them costs.
type group struct {
	mu    sync.Mutex
	queue []*member // in the order of arrival
	led   bool      // one of the callers is the leader
}

// A member is a commit in the queue.
type member struct {
	*commit
	turn  chan struct{} // receives once when the member has its outcome, and once when it becomes the leader
	done  bool          // the member has its outcome; under the group's lock until turn has received
	leads bool          // the member is the leader; under the group's lock
	gone  bool          // the caller no longer waits; under the group's lock
	alone bool          // its transaction failed; it is retried in one of its own, for its own error
	err   error
}

// The limits of one transaction. The first commit is always included.
const (
	mostWrites = store.MaxWrites
	mostBytes  = store.MaxCommit
)

// writeTogether writes a transaction. It calls take, which returns the commits for the transaction, at most once: after
// the file was locked. An error before that concerns only the leader.
type writeTogether func(ctx context.Context, take func() []*member) error

var errLost = errors.New("embedded store: the commit was not written, because the driver panicked")

// join queues the commit, waits until this caller or another one has written it, and returns its outcome.
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

// appoint makes the head of the queue the leader. The caller holds the lock.
func (g *group) appoint() {
	g.led = len(g.queue) > 0
	if g.led {
		g.queue[0].leads = true
		g.queue[0].turn <- struct{}{}
	}
}

// leave removes the member from the queue, because its caller no longer waits. It reports whether the member already
// has its outcome.
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

// lead writes one transaction that begins with the leader's commit. Then the next caller in the queue becomes the
// leader.
func (g *group) lead(ctx context.Context, leader *member, write writeTogether) {
	// This lets other callers that are ready to commit join the queue first. On one core, no other goroutine runs until
	// the leader is done. On several cores they run anyway, and yielding would mean waiting for another thread.
	if runtime.GOMAXPROCS(0) == 1 {
		runtime.Gosched()
	}
	var taken []*member
	err := errLost // the error if the driver panics
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

// take removes the head of the queue from it, with the commits after it that fit into the same transaction.
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

// settle gives the members of a transaction their outcomes. If a transaction of several members failed, they return to
// the head of the queue, and each is then written in a transaction of its own.
func (g *group) settle(leader *member, taken []*member, failed error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	leader.leads = false
	if failed == errLost { // the leader's caller is about to panic
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
