package api_test

import (
	"context"
	"net/http"
	"path"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// TestAckAfterRecord delivers one message whose run another process has leased, and one while the store is down.
// Neither is acknowledged before its work is recorded, so both are redelivered.
func TestAckAfterRecord(t *testing.T) {
	w := newEnv(t)
	var held answer
	runID := ""
	w.model.Then(script.Turn{Text: "Hello.", Hook: func(ctx context.Context, _ model.Request) {
		docs, err := w.store.Query(ctx, store.Query{Collection: "runs", OrderBy: store.ByName, Limit: 1})
		if err != nil || len(docs) != 1 {
			t.Errorf("%v, %d runs", err, len(docs))
			return
		}
		runID = path.Base(docs[0].Path)
		held = w.pushBody(string(queue.Envelope(queue.Message{RunID: runID}, "m1", 1, time.Now())))
	}})
	if a := w.send("POST", "/api/agent/run", "ana", `{"prompt":"hello"}`); a.StatusCode != http.StatusOK {
		t.Fatalf("%s %s; want a.StatusCode %v", a.Status, a.body, http.StatusOK)
	}
	if held.Response == nil || held.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("while another process moves the run: %+v", held.Response)
	}
	w.loop.Store = faulty.Wrap(w.store, faulty.Down)
	if a := w.pushBody(string(queue.Envelope(queue.Message{RunID: runID}, "m1", 2,
		time.Now()))); a.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("while the store is down: %s", a.Status)
	}
	w.loop.Store = w.store
	if a := w.pushBody(string(queue.Envelope(queue.Message{RunID: runID}, "m1", 3,
		time.Now()))); a.StatusCode != http.StatusNoContent {
		t.Errorf("when nothing is left to do: %s", a.Status)
	}
}
