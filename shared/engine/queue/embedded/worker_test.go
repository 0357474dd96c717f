package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/queue/embedded"
	"github.com/countersign-run/countersign/shared/engine/queue/queuetest"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// TestWorkerConformance resumes runs in the process that moves them and in another one. If the message is a document,
// the consumer that dies is a process. If it is in memory, the consumer is a Run that ends in a process that continues.
func TestWorkerConformance(t *testing.T) {
	for name, open := range map[string]func(store.Store) queuetest.Backend{
		"in its process": func(st store.Store) queuetest.Backend {
			w := embedded.NewWorker(embedded.New(st, embedded.Options{}))
			return queuetest.Backend{Queue: w, Consume: func(t *testing.T, push queuetest.Push) func() {
				return consume(t, w, push, func() {})
			}}
		},
		"in another": func(st store.Store) queuetest.Backend {
			return queuetest.Backend{Queue: embedded.New(st, embedded.Options{}),
				Consume: func(t *testing.T, push queuetest.Push) func() {
					mine := faulty.Wrap(st)
					return consume(t, embedded.NewWorker(embedded.New(mine, embedded.Options{})), push,
						func() { cut(mine) })
				}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			queuetest.Run(t, queuetest.Suite{
				Open:       func(t *testing.T) queuetest.Backend { return open(newMemory(t)) },
				Redelivers: 5 * time.Minute,
				Quiet:      10 * time.Minute,
				In:         synctest.Test,
			})
		})
	}
}

// consume runs a worker until it is killed or the test ends. die cuts it off from everything that outlives it.
func consume(t *testing.T, w *embedded.Worker, push queuetest.Push, die func()) (kill func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(ctx, embedded.Work{Serves: anyAgent, Move: func(own context.Context, m queue.Message, n int) error {
			own, stop := context.WithCancel(own)
			defer context.AfterFunc(ctx, stop)()
			return push(own, queue.Envelope(m, "m", n, time.Now()))
		}})
	}()
	kill = func() {
		die()
		cancel()
		<-ended
	}
	t.Cleanup(kill)
	return kill
}

func anyAgent(string) bool { return true }

// A resume within the process costs no write and no read.
func TestWorkerWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := faulty.Wrap(newMemory(t))
		w := embedded.NewWorker(embedded.New(st, embedded.Options{}))
		moved := make(chan queue.Message)
		work(t, w, embedded.Work{Serves: anyAgent, Elsewhere: make(chan struct{}),
			Move: func(_ context.Context, m queue.Message, _ int) error { moved <- m; return nil }})
		st.Set(faulty.Of(func(*faulty.Call) bool { t.Error("the store was asked"); return false }, faulty.Down))
		m := queue.Message{RunID: run, Agent: "clerk", UID: "ana", ThreadID: "thread"}
		if err := w.Resume(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if got := <-moved; got != m {
			t.Errorf("moved %+v, want %+v", got, m)
		}
		synctest.Wait()
	})
}

// Runs that this process does not move are left to others, as documents, and the documents of other processes stay
// where they are.
func TestWorkerOwnRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newMemory(t)
		here, there := embedded.NewWorker(embedded.New(st, embedded.Options{})),
			embedded.NewWorker(embedded.New(st, embedded.Options{}))
		moved := make(chan string, 10)
		serves := func(mine string) embedded.Work {
			return embedded.Work{Serves: func(agent string) bool { return agent == mine },
				Move: func(_ context.Context, m queue.Message, _ int) error { moved <- mine + m.Agent; return nil }}
		}
		work(t, here, serves("clerk"))
		if err := errors.Join(here.Resume(t.Context(), queue.Message{RunID: runID(1), Agent: "terminal"}),
			here.Resume(t.Context(), queue.Message{RunID: runID(2), Agent: "clerk"})); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		work(t, there, serves("terminal"))
		time.Sleep(time.Hour)
		close(moved)
		var all []string
		for who := range moved {
			all = append(all, who)
		}
		if !slices.Equal(all, []string{"clerkclerk", "terminalterminal"}) {
			t.Errorf("moved were %v", all)
		}
		if left := messages(t, st); left != 0 {
			t.Errorf("%d documents are left", left)
		}
	})
}

// A document is deleted only after its run was moved, because the process may end before that.
func TestWorkerDocumentsUntilMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newMemory(t)
		resume(t, embedded.New(st, embedded.Options{}), run)
		attempts := 0
		work(t, embedded.NewWorker(embedded.New(st, embedded.Options{})), embedded.Work{Serves: anyAgent,
			Move: func(context.Context, queue.Message, int) error {
				if attempts++; messages(t, st) != 1 {
					t.Errorf("%d documents at attempt %d", messages(t, st), attempts)
				}
				if attempts < 3 {
					return errors.New("not now")
				}
				return nil
			}})
		time.Sleep(time.Hour)
		if attempts != 3 || messages(t, st) != 0 {
			t.Errorf("%d attempts, and %d documents are left", attempts, messages(t, st))
		}
	})
}

// Run returns when the moves in progress are finished, and begins no new one.
func TestWorkerAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := embedded.NewWorker(embedded.New(newMemory(t), embedded.Options{}))
		finish, moved := make(chan struct{}), 0
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.Run(ctx, embedded.Work{Serves: anyAgent, Move: func(ctx context.Context, _ queue.Message, _ int) error {
				<-finish
				moved++
				return ctx.Err()
			}})
		}()
		resume(t, w, runID(1))
		synctest.Wait()
		cancel()
		resume(t, w, runID(2))
		synctest.Wait()
		select {
		case <-ended:
			t.Fatal("Run returned before what was under way")
		default:
		}
		close(finish)
		<-ended
		if moved != 1 {
			t.Errorf("%d runs were moved", moved)
		}
	})
}

// A run waits only once beside the one in progress, and the number of waiting runs is limited.
func TestWorkerLimits(t *testing.T) {
	w := embedded.NewWorker(embedded.New(newMemory(t), embedded.Options{}))
	for i := range embedded.MostWaiting {
		resume(t, w, runID(i))
	}
	resume(t, w, runID(7))
	if err := w.Resume(t.Context(), queue.Message{RunID: runID(embedded.MostWaiting)}); err == nil {
		t.Error("one more was taken")
	}
}

// TestWorkerProperty resumes runs in any order and at any time. Their moves fail and take time. No run is moved twice
// at once, at most Moves are in progress, and after the last resume of a run one of its moves begins and succeeds.
func TestWorkerProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		asks := rapid.SliceOfN(rapid.IntRange(0, 50), 1, 120).Draw(rt, "asks")
		pauses := rapid.SliceOfN(rapid.SampledFrom([]time.Duration{0, 0, 0, time.Millisecond, 3 * time.Second}),
			len(asks), len(asks)).Draw(rt, "pauses")
		takes := rapid.SliceOfN(rapid.SampledFrom([]time.Duration{0, time.Millisecond, 2 * time.Second}), 51,
			51).Draw(rt, "takes")
		fails := rapid.SliceOfN(rapid.IntRange(0, 3), 51, 51).Draw(rt, "fails")
		synctest.Test(t, func(t *testing.T) {
			m := &moves{takes: takes, fails: fails, moving: map[string]bool{}, due: map[string]bool{}}
			w := embedded.NewWorker(embedded.New(newMemory(t), embedded.Options{}))
			work(t, w, embedded.Work{Serves: anyAgent, Elsewhere: make(chan struct{}), Move: m.move})
			for i, n := range asks {
				m.ask(runID(n))
				resume(t, w, runID(n))
				time.Sleep(pauses[i])
			}
			time.Sleep(time.Hour)
			m.mu.Lock()
			defer m.mu.Unlock()
			if len(m.wrong) > 0 || len(m.due) > 0 {
				rt.Errorf("%v; not moved since they were asked for: %v", m.wrong, m.due)
			}
		})
	})
}

type moves struct {
	takes []time.Duration
	fails []int

	mu     sync.Mutex
	moving map[string]bool
	due    map[string]bool // resumed, and no successful move has begun since
	wrong  []string
}

func (m *moves) ask(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.due[id] = true
}

func (m *moves) move(_ context.Context, message queue.Message, attempt int) error {
	id := message.RunID
	var n int
	if _, err := fmt.Sscanf(id, "run_%d", &n); err != nil {
		return err
	}
	m.mu.Lock()
	if m.moving[id] || len(m.moving) >= embedded.Moves {
		m.wrong = append(m.wrong, id)
	}
	m.moving[id] = true
	failing := m.fails[n] > 0
	if m.fails[n]--; !failing {
		delete(m.due, id)
	}
	m.mu.Unlock()
	time.Sleep(m.takes[n])
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.moving, id)
	if failing {
		return errors.New("not now")
	}
	return nil
}

// work runs a worker until the test ends.
func work(t *testing.T, w *embedded.Worker, what embedded.Work) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx, what) }()
	t.Cleanup(func() { cancel(); <-ended })
}

func resume(t *testing.T, q queue.Queue, id string) {
	t.Helper()
	if err := q.Resume(t.Context(), queue.Message{RunID: id}); err != nil {
		t.Fatal(err)
	}
}

func messages(t *testing.T, st store.Store) int {
	t.Helper()
	docs, err := st.Query(context.WithoutCancel(t.Context()), document.AllMessages(100))
	if err != nil {
		t.Fatal(err)
	}
	return len(docs)
}

func runID(n int) string { return fmt.Sprintf("run_%016d", n) }
