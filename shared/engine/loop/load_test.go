package loop_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/quota"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// The load, which is small by default. This is a large one:
//
//	go test ./shared/engine/loop -run TestLoadAtTheQuota -v -args -load.runs 1000 -load.quota 100
var (
	loadRuns  = flag.Int("load.runs", 300, "runs that begin at the same time")
	loadQuota = flag.Int("load.quota", 30, "the model's requests in a minute")
)

// metered is a model with a quota: it refuses the requests of a minute that are too many.
type metered struct {
	quota int

	mu      sync.Mutex
	minutes map[int64]int
	refused int
}

func (m *metered) Name() string { return "metered" }

func (m *metered) Generate(ctx context.Context, req model.Request, delta func(string)) (*model.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	minute := time.Now().Unix() / 60
	if m.minutes[minute]++; m.minutes[minute] > m.quota {
		m.refused++
		return nil, fault.New(fault.Model, model.CodeQuota, "Too many requests.")
	}
	return script.New(script.Turn{Text: "Done."}).Generate(ctx, req, delta)
}

// load is a deployment with several instances on one store, in a bubble whose clock only waits move.
type load struct {
	t         *testing.T
	model     *metered
	store     *faulty.Counter
	quotas    *faulty.Counter // the calls about the shared quota
	instances []*loop.Loop
	due       chan queue.Message
}

func newLoad(t *testing.T, requests, instances int) *load {
	st := memory.New(time.Now)
	w := &load{t: t, model: &metered{quota: requests, minutes: map[int64]int{}}, store: faulty.Count(st),
		quotas: faulty.Count(st), due: make(chan queue.Message, *loadRuns)}
	for range instances {
		w.instances = append(w.instances, loop.New(unit.Env{Store: w.store, Queue: w, Model: w.model, Now: time.Now,
			Sleep: wait.For, ModelPatience: time.Hour,
			Quota:  quota.New(quota.Config{Store: w.quotas, Limits: quota.Limits{Requests: requests}}),
			Agents: registry.Set{run.Assistant: testAgent(run.Assistant, "You are a test.")}}))
	}
	return w
}

// Resume makes the load its own queue.
func (w *load) Resume(_ context.Context, m queue.Message) error {
	w.due <- m
	return nil
}

func (w *load) Close() error { return nil }

// each calls do for the numbers below n at the same time, with an instance for each.
func (w *load) each(n int, do func(i int, l *loop.Loop) error) {
	w.t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := do(i, w.instances[i%len(w.instances)]); err != nil {
				w.t.Error(err)
			}
		})
	}
	all.Wait()
}

// minute waits for the next minute, sweeps, and advances the runs that are due.
func (w *load) minute() {
	w.t.Helper()
	if err := wait.For(w.t.Context(), time.Until(time.Now().Truncate(time.Minute).Add(time.Minute))); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.instances[0].Sweep(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.each(len(w.due), func(_ int, l *loop.Loop) error {
		_, err := l.Resume(w.t.Context(), <-w.due, nil)
		return err
	})
}

// TestLoadAtTheQuota begins many runs of users with one run and with hundreds, on several instances, against a model
// that answers a tenth of them in a minute. All are answered, none fails, the model refuses nothing, and the waits are
// those that the quota allows: a minute has nine tenths of its quota for runs that wait.
func TestLoadAtTheQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, requests := *loadRuns, *loadQuota
		w := newLoad(t, requests, 5)
		began, ids := time.Now(), make([]string, runs)
		w.each(runs, func(i int, l *loop.Loop) error {
			uid := fmt.Sprintf("user%d", min(i%(runs*2/5), runs/10)) // the last has most of the runs
			v, err := l.Start(t.Context(), loop.StartRequest{UID: uid}, loop.Prompt{Text: "Hi."})
			ids[i] = v.RunID
			return err
		})
		computed := time.Duration((runs-requests)*10/(requests*9)+2) * time.Minute
		for time.Since(began) <= computed {
			w.minute()
		}
		counts, quotas := w.store.Take(), w.quotas.Take()
		waits, few := w.waits(began, ids, fmt.Sprintf("user%d", runs/10))
		p99, last := waits[len(waits)*99/100], waits[len(waits)-1]
		t.Logf("%d runs at %d requests a minute: waits p50 %s, p99 %s, longest %s; of users with few runs %s",
			runs, requests, waits[len(waits)/2], p99, last, few[len(few)-1])
		t.Logf("the store had %d reads, %d queries and %d commits; the quota %d reads and %d commits", counts.Get.Trips,
			counts.Query.Trips, counts.Commit.Trips, quotas.Get.Trips, quotas.Commit.Trips)
		if w.model.refused > 0 {
			t.Errorf("the model refused %d requests", w.model.refused)
		}
		if p99 > computed || p99 < computed-3*time.Minute {
			t.Errorf("p99 is %s, computed are %s", p99, computed)
		}
		if few[len(few)-1] > computed/2 {
			t.Errorf("a user with few runs waits %s", few[len(few)-1])
		}
		if most := 5 * int(computed/time.Second); quotas.Commit.Trips > most || counts.Commit.Trips > 6*runs {
			t.Errorf("too many commits: %+v, quota %+v", counts.Commit, quotas.Commit)
		}
	})
}

// waits returns how long the runs took, in order, and how long those of the users with few runs took. many is the user
// with many. It fails the test for each run that was not answered.
func (w *load) waits(began time.Time, ids []string, many string) (all, few []time.Duration) {
	w.t.Helper()
	for i, id := range ids {
		docs, err := w.store.Get(w.t.Context(), document.RunPath(id))
		if err != nil {
			w.t.Fatal(err)
		}
		f, took := document.RunFieldsOf(docs[0]), docs[0].Version.Sub(began)
		if f.Status != string(run.Completed) {
			w.t.Errorf("run %d is %s", i, f.Status)
		}
		if all = append(all, took); f.UID != many {
			few = append(few, took)
		}
	}
	byLength := func(a, b time.Duration) int { return cmp.Compare(a, b) }
	slices.SortFunc(all, byLength)
	slices.SortFunc(few, byLength)
	return all, few
}
