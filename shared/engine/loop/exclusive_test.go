package loop_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// TestExclusiveStartRace begins many runs at once in one thread of an exclusive agent. One begins, and the refusals of
// the others name it. Once that run is overdue, the next one begins before any sweep.
func TestExclusiveStartRace(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := open(t)
		w.assistant().Exclusive = true
		w.loop.Model = &asked{tool: "send"}
		var (
			begun   [8]*run.View
			refused [8]error
			all     sync.WaitGroup
		)
		for i := range begun {
			all.Go(func() {
				begun[i], refused[i] = w.loop.Start(t.Context(), loop.StartRequest{UID: "ana",
					ThreadID: "thread-of-ana-1", Title: "tell bob"}, loop.Prompt{Text: "tell bob"})
			})
		}
		all.Wait()
		id := ""
		for _, v := range begun {
			if v != nil && id != "" {
				t.Fatalf("both %s and %s began", id, v.RunID)
			}
			if v != nil {
				id = v.RunID
			}
		}
		for _, err := range refused {
			var other *run.OpenError
			if err != nil && (!fault.Is(err, fault.Policy, fault.CodeRunOpen) || fault.As(err).Status() != 409 ||
				!errors.As(err, &other) || other.RunID != id || other.Status == "") {
				t.Errorf("%s is open: %v, %+v", id, err, other)
			}
		}
		w.tick(100 * time.Hour)
		if _, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana", ThreadID: "thread-of-ana-1"},
			loop.Prompt{Text: "tell bob"}); err != nil {
			t.Errorf("after %s is overdue: %v", id, err)
		}
	})
}

// TestExclusiveAfterDeletion deletes the open run of a thread, and quarantines another. The next run begins.
func TestExclusiveAfterDeletion(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := open(t)
		w.assistant().Exclusive = true
		w.loop.Model = &asked{tool: "send"}
		start := func(thread string) (*run.View, error) {
			return w.loop.Start(t.Context(), loop.StartRequest{UID: "ana", ThreadID: thread},
				loop.Prompt{Text: "tell bob"})
		}
		v, err := start("")
		if err != nil {
			t.Fatal(err)
		}
		for name, gone := range map[string]func(store.Doc) store.Write{
			"deleted": func(d store.Doc) store.Write { return store.Delete(d.Path, d.Version) },
			"put aside, unreadable": func(d store.Doc) store.Write {
				f := document.RunFieldsOf(d)
				f.Due, f.Quarantined = document.Never, true
				return store.Update(d.Path, d.Version, f.Map(document.ID(d)), []byte(`{"id":5}`))
			},
		} {
			if _, err := start(v.ThreadID); !fault.Is(err, fault.Policy, fault.CodeRunOpen) {
				t.Fatalf("while one is open: %v", err)
			}
			if _, err := w.store.Commit(t.Context(), gone(w.document(v.RunID))); err != nil {
				t.Fatal(err)
			}
			if v, err = start(v.ThreadID); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
}
