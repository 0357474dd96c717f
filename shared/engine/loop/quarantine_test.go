package loop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// TestSweepPassesUnreadableRuns has more unreadable runs than a page of the sweep, all due before a readable one. The
// first sweep moves the readable one. The others are tried a few times, quarantined and logged.
func TestSweepPassesUnreadableRuns(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		ctx, w := context.Background(), open(t)
		many := 250
		if strings.HasSuffix(t.Name(), "firestore") { // the emulator is slow; embedded covers the pages
			many = 8
		}
		var logs bytes.Buffer
		w.loop.Log = slog.New(slog.NewTextHandler(&logs, nil))
		broken := []string{`{"id":`, `{"id":5}`, `{"id":"x","log":{"count":3}}`,
			`{"id":"x","uid":"ana","log":{"count":1,"tail":[{"seq":1,"type":"run.ended"}]}}`}
		var writes []store.Write
		ids := make([]string, many)
		for i := range ids {
			ids[i] = fmt.Sprintf("unreadable%016d", i)
			fields := map[string]any{"uid": "ana", "threadId": "t", "status": "planning", "createdAt": w.clock().UTC(),
				"due": w.clock().UTC().Truncate(time.Microsecond)}
			writes = append(writes, store.Create(document.RunPath(ids[i]), fields, []byte(broken[i%len(broken)])))
		}
		if _, err := w.store.Commit(ctx, writes...); err != nil {
			t.Fatal(err)
		}
		w.tick(time.Minute)
		if err := w.loop.GiveShards(ctx); err != nil { // as an earlier release stored them
			t.Fatal(err)
		}
		w.model.Then(script.Turn{
			Calls: []script.Call{{Name: "send", Args: map[string]any{"to": []string{"bob@x.org"}, "text": "ten"}}}})
		v, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "tell bob"})
		if err == nil {
			_, err = w.loop.Resolve(ctx,
				approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(v.RunID, 1), Decision: run.ApproveOnce})
		}
		if err != nil {
			t.Fatal(err)
		}
		w.queue = nil // the publish was lost
		w.model.Then(script.Turn{Text: "Done."})
		rounds := 0
		for due := 1; due > 0 && rounds < 10; rounds++ {
			w.tick(10 * time.Minute)
			s, err := w.loop.Sweep(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range w.queue {
				if _, err := w.loop.Advance(ctx, id, nil); err != nil && !unit.Postponed(err) {
					t.Fatal(id, err)
				}
			}
			w.queue, due = nil, s.Due
			if rounds == 0 && (len(w.effects) != 1 || s.Due != many+1) {
				t.Fatalf("the first sweep found %d, and %d effects followed", s.Due, len(w.effects))
			}
		}
		docs, err := w.store.Get(ctx, document.RunPath(ids[0]))
		if err != nil || rounds != 6 || docs[0].Fields["aside"] != true || string(docs[0].Data) != broken[0] {
			t.Errorf("%v, after %d rounds: %v", err, rounds, docs[0])
		}
		if n := strings.Count(logs.String(), "counter=run_aside"); n != len(ids) {
			t.Errorf("%d of %d are logged", n, len(ids))
		}
		if runs, err := w.loop.Reclaim(ctx); err != nil || runs != 0 {
			t.Errorf("taken up: %d, %v", runs, err)
		}
	})
}

// TestQuarantineNotForStoreErrors lets a store refuse to read a run more often than a run may fail. None of this counts
// against the run.
func TestQuarantineNotForStoreErrors(t *testing.T) {
	ctx, w := context.Background(), newEnv(t)
	w.model.Then(script.Turn{
		Calls: []script.Call{{Name: "send", Args: map[string]any{"to": []string{"bob@x.org"}, "text": "ten"}}}})
	v := start(t, w, "tell bob")
	whole := w.loop.Store
	for range 12 {
		w.loop.Store = faulty.Wrap(whole, faulty.Gets(faulty.Each(func(n int) bool { return n%2 == 1 },
			faulty.Fail(errors.New("PermissionDenied")))))
		if _, err := w.loop.Advance(ctx, v.RunID, nil); err == nil || unit.Postponed(err) {
			t.Fatalf("a run that could not be read was moved, or set back: %v", err)
		}
	}
	w.loop.Store = whole
	if f := document.RunFieldsOf(w.document(v.RunID)); f.Tries > 0 || f.Quarantined {
		t.Errorf("the run was blamed: %+v", f)
	}
}
