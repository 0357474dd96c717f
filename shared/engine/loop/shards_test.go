package loop_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// asBefore stores a document in the form of the earlier release, without a shard.
func (w *env) asBefore(path string) {
	w.t.Helper()
	docs, err := w.store.Get(context.Background(), path)
	if err != nil {
		w.t.Fatal(err)
	}
	fields := maps.Clone(docs[0].Fields)
	delete(fields, "dueShard")
	if _, err := w.store.Commit(context.Background(),
		store.Update(path, docs[0].Version, fields, docs[0].Data)); err != nil {
		w.t.Fatal(err)
	}
}

// TestRunsOfTheReleaseBefore has an approval that expires in a run without a shard, and one in a run that was stored
// without a shard during the deployment of this release. An interrupted deletion then continues.
func TestRunsOfTheReleaseBefore(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		ctx, w := context.Background(), open(t)
		send := script.Turn{Calls: []script.Call{{Name: "send", Args: map[string]any{"to": []string{"bob@x.org"},
			"text": "ten"}}}}
		waiting := func() *run.View {
			w.model.Then(send)
			v, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "tell bob"})
			if err != nil || v.Status != run.Awaiting {
				t.Fatalf("%v %+v; want v.Status %v", err, v, run.Awaiting)
			}
			w.asBefore(document.RunPath(v.RunID))
			w.asBefore(document.ThreadPath(v.ThreadID))
			return v
		}
		give := func() {
			t.Helper()
			if err := w.loop.GiveShards(ctx); err != nil {
				t.Fatal(err)
			}
		}
		swept := func(want int) {
			t.Helper()
			if s, err := w.loop.Sweep(ctx); err != nil || s.Due != want {
				t.Fatalf("%v: %d of %d are due", err, s.Due, want)
			}
		}
		first := waiting()
		give()
		late := waiting()
		w.tick(30 * 24 * time.Hour)
		swept(1)
		give() // after an hour: once more, and no more
		swept(2)
		for _, v := range []*run.View{first, late} {
			deliver(t, w)
			if got, _, err := w.loop.Get(ctx, "ana", v.RunID); err != nil || got.Status != run.Failed {
				t.Errorf("%v: a run whose approval has expired is %+v", err, got)
			}
		}
		gone := document.ThreadFields{UID: "ana", Deleting: w.clock().Add(-time.Hour)}.Map("thread-cut-off-0001")
		delete(gone, "dueShard")
		if _, err := w.store.Commit(ctx, store.Create(document.ThreadPath("thread-cut-off-0001"), gone,
			[]byte(`{"id":"thread-cut-off-0001","uid":"ana","deleting":true}`))); err != nil {
			t.Fatal(err)
		}
		w.asBefore("sweeps/shards") // the rest tests the first sweep of another store
		if _, err := w.store.Commit(ctx, store.Delete("sweeps/shards", time.Time{})); err != nil {
			t.Fatal(err)
		}
		w.loop = loop.New(w.loop.Env)
		give()
		d, err := (&records.Records{Store: w.store, Now: w.clock}).FinishDeletions(ctx)
		if err != nil || d != (records.Deletions{Begun: 1, Gone: 1}) {
			t.Errorf("%v: %+v", err, d)
		}
	})
}

// TestSweepEveryShard has a run due in each of many shards, and one shard with more than a page. The sweep resumes each
// of them once.
func TestSweepEveryShard(t *testing.T) {
	ctx, w := context.Background(), newEnv(t)
	var writes []store.Write
	due := map[string]bool{}
	add := func(id string) {
		f := document.RunFields{UID: "ana", Status: "planning", CreatedAt: w.clock(), Due: w.clock()}
		writes = append(writes, store.Create(document.RunPath(id), f.Map(id), []byte(`{}`)))
		due[id] = true
	}
	for n := range 200 {
		add(fmt.Sprintf("run-%020d", n))
	}
	for n := 0; len(due) < 480; n++ {
		if id := fmt.Sprintf("full-%020d", n); document.Shard(id) == 5 {
			add(id)
		}
	}
	if _, err := w.store.Commit(ctx, writes...); err != nil {
		t.Fatal(err)
	}
	w.queue = nil
	w.tick(time.Minute)
	s, err := w.loop.Sweep(ctx)
	if err != nil || s.Due != len(due) || s.Published != len(due) || s.More {
		t.Fatalf("%v: %+v", err, s)
	}
	for _, id := range w.queue {
		delete(due, id)
	}
	if len(due) > 0 {
		t.Errorf("%d runs were left out", len(due))
	}
}

// handed is a [queue.Sweeper] that keeps its messages.
type handed []queue.Shard

func (h *handed) Sweep(_ context.Context, s queue.Shard) error { *h = append(*h, s); return nil }

func (h *handed) Close() error { return nil }

// TestSweepOfLargeShard has a shard with more than a page. Other requests sweep its rest, and each hands on the part
// for which it has no time. Together they resume each run once. An unknown shard is refused.
func TestSweepOfLargeShard(t *testing.T) {
	ctx, w := context.Background(), newEnv(t)
	due := map[string]bool{}
	var writes []store.Write
	for n := 0; len(due) < 900; n++ {
		id := fmt.Sprintf("run-%020d", n)
		if shard := document.Shard(id); shard != 5 && (shard != 9 || n > 1000) {
			continue
		}
		f := document.RunFields{UID: "ana", Status: "planning", CreatedAt: w.clock(), Due: w.clock()}
		writes, due[id] = append(writes, store.Create(document.RunPath(id), f.Map(id), []byte(`{}`))), true
	}
	for page := range slices.Chunk(writes, store.MaxWrites) {
		if _, err := w.store.Commit(ctx, page...); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	asked := map[string]int{}
	w.loop.Queue = queueFunc(func(_ context.Context, m queue.Message) error {
		mu.Lock()
		defer mu.Unlock()
		asked[m.RunID]++
		return nil
	})
	var more handed
	w.loop.Sweeper = &more
	w.tick(time.Minute)
	s, err := w.loop.Sweep(ctx)
	if err != nil || s.More || s.Handed != 1 || len(more) != 1 || more[0].Number != 5 {
		t.Fatalf("%v: %+v, handed on %+v", err, s, more)
	}
	short, cancel := context.WithTimeout(ctx, 10*time.Second) // less than the time that is kept for a page
	defer cancel()
	for n := 0; n < len(more); n++ { // the requests add to more
		got, err := w.loop.SweepShard(short, more[n])
		if err != nil || got.Due > 200 || got.More != (n+1 < len(more)) {
			t.Fatalf("%v: request %d did %+v", err, n, got)
		}
	}
	if len(more) != 4 {
		t.Errorf("%d requests shared the work", len(more))
	}
	for id := range due {
		if asked[id] != 1 {
			t.Errorf("%s was asked for %d times", id, asked[id])
		}
	}
	for _, number := range []int64{-1, document.Shards} {
		if _, err := w.loop.SweepShard(ctx, queue.Shard{Number: number}); fault.As(err).Class != fault.Validation {
			t.Errorf("shard %d: %v", number, err)
		}
	}
}

// queueFunc is a queue.
type queueFunc func(context.Context, queue.Message) error

func (f queueFunc) Resume(ctx context.Context, m queue.Message) error { return f(ctx, m) }

func (queueFunc) Close() error { return nil }

// The times of the simulation, as of Google's services in one region.
const (
	queryTakes   = 150 * time.Millisecond // a page of 200 runs
	publishTakes = 15 * time.Millisecond
	pushTakes    = 50 * time.Millisecond  // from a publish to the function
	resumeTakes  = 250 * time.Millisecond // an expired approval: a read, two commits, and the end of its run
)

// overdue are runs that are all due.
type overdue struct {
	mu     sync.Mutex
	shards [document.Shards][]string // IDs in their order
	left   map[string]bool
}

// query answers the queries of a sweep in place of the store.
func (o *overdue) query(_ context.Context, c *faulty.Call, _ faulty.Next) error {
	time.Sleep(queryTakes)
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.shards[c.Query.Where[0].Value.(int64)]
	if after := c.Query.After; after != nil {
		n, _ := slices.BinarySearch(all, after.ID)
		all = all[n+1:]
	}
	for _, id := range all {
		if o.left[id] {
			c.Docs = append(c.Docs, store.Doc{Path: document.RunPath(id), Data: []byte(`{}`),
				Fields: document.RunFields{Due: time.Unix(0, 0)}.Map(id)})
		}
		if len(c.Docs) == c.Query.Limit {
			break
		}
	}
	return nil
}

// ended removes a run that was resumed.
func (o *overdue) ended(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.left, id)
}

func (o *overdue) remaining() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.left)
}

// instances are the instances of a function. They handle as many requests at a time as infra/functions.json allows.
type instances chan request

// request is a request with the time of its publication.
type request struct {
	at    time.Time
	takes func()
}

// newInstances returns n of them. They end when the channel is closed.
func newInstances(n int) instances {
	requests := make(instances, 1<<18) // no goroutine for each request: the race detector would need gigabytes for them
	for range n {
		go func() {
			for r := range requests {
				time.Sleep(time.Until(r.at.Add(pushTakes)))
				r.takes()
			}
		}()
	}
	return requests
}

func (i instances) handle(takes func()) { i <- request{time.Now(), takes} }

type sweepers struct {
	instances
	l *loop.Loop
	t *testing.T
}

func (s *sweepers) Sweep(_ context.Context, at queue.Shard) error {
	time.Sleep(publishTakes)
	s.handle(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Second)
		defer cancel()
		if _, err := s.l.SweepShard(ctx, at); err != nil {
			s.t.Error(err)
		}
	})
	return nil
}

func (s *sweepers) Close() error { return nil }

// TestSweepOfHundredThousand simulates a load that no emulator can handle. 100,000 approvals expire within a
// minute, and are handled within five, by the sweep and the resume function as deployed. Without the sweeps that are
// handed on, one request would publish them all.
func TestSweepOfHundredThousand(t *testing.T) {
	realpart.Long(t, "it simulates a hundred thousand expiries twice")
	const all = 100_000
	took := map[bool]time.Duration{}
	for _, handsOn := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			o := &overdue{left: map[string]bool{}}
			for n := range all {
				id := fmt.Sprintf("run-%020d", n)
				o.left[id] = true
				o.shards[document.Shard(id)] = append(o.shards[document.Shard(id)], id)
			}
			resumes := newInstances(20 * 10)
			defer close(resumes)
			l := loop.New(unit.Env{Store: faulty.Wrap(memory.New(time.Now), o.query), Now: time.Now,
				Queue: queueFunc(
					func(_ context.Context, m queue.Message) error {
						time.Sleep(publishTakes)
						resumes.handle(func() { time.Sleep(resumeTakes); o.ended(m.RunID) })
						return nil
					})})
			if handsOn {
				sweeps := newInstances(16 * 4)
				defer close(sweeps)
				l.Sweeper = &sweepers{sweeps, l, t}
			}
			began := time.Now()
			for o.remaining() > 0 && time.Since(began) < time.Hour {
				next := time.Now().Add(time.Minute)
				ctx, cancel := context.WithTimeout(context.Background(), 300*time.Second)
				if _, err := l.Sweep(ctx); err != nil {
					t.Fatal(err)
				}
				cancel()
				for o.remaining() > 0 && time.Now().Before(next) {
					time.Sleep(time.Second)
				}
			}
			took[handsOn] = time.Since(began)
			time.Sleep(time.Hour) // a message that is published twice is handled too
			synctest.Wait()
		})
	}
	t.Logf("%d expired approvals are worked off in %s; by one request in %s", all, took[true], took[false])
	if took[true] > 5*time.Minute || took[false] < 2*took[true] {
		t.Errorf("they take %s, and by one request %s", took[true], took[false])
	}
}
