package loop_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/records"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// asBefore stores a document as the release before did, without a shard.
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

// TestRunsOfTheReleaseBefore has an approval expire whose run was stored without a shard, and one whose run was stored
// so while this release was being deployed; and a deletion that was cut off then goes on.
func TestRunsOfTheReleaseBefore(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		ctx, w := context.Background(), open(t)
		send := script.Turn{Calls: []script.Call{{Name: "send", Args: map[string]any{"to": []string{"bob@x.org"},
			"text": "ten"}}}}
		waiting := func() *run.View {
			w.model.Then(send)
			v, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana", Prompt: "tell bob"}, nil)
			if err != nil || v.Status != run.Awaiting {
				t.Fatalf("%v %+v", err, v)
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
		give() // an hour has passed: once more, and no more
		swept(2)
		for _, v := range []*run.View{first, late} {
			if err := w.deliver(ctx); err != nil {
				t.Fatal(err)
			}
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
		w.asBefore("sweeps/shards") // what follows is another store's first sweep
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

// TestEveryShardIsSwept has a run due in each of many shards, and one shard with more than a page: the sweep asks for
// all of them once.
func TestEveryShardIsSwept(t *testing.T) {
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
