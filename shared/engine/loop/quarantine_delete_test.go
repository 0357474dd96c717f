package loop_test

import (
	"context"
	"maps"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// setAside overwrites a run's document, as another release would with a format that this one cannot read. It moves the
// run until it is quarantined, and returns the previous document.
func (w *env) setAside(runID, data string) (before []byte) {
	w.t.Helper()
	before = w.rewrite(runID, []byte(data))
	for range 5 {
		if _, err := w.loop.Advance(context.Background(), runID, nil); !unit.Postponed(err) {
			w.t.Fatalf("a run that cannot be read: %v", err)
		}
		w.tick(10 * time.Minute)
	}
	if d := w.document(runID); !document.RunFieldsOf(d).Quarantined {
		w.t.Fatalf("it is not aside: %v", d.Fields)
	}
	return before
}

func (w *env) document(runID string) store.Doc {
	w.t.Helper()
	docs, err := w.store.Get(context.Background(), document.RunPath(runID))
	if err != nil {
		w.t.Fatal(err)
	}
	return docs[0]
}

func (w *env) rewrite(runID string, data []byte) (before []byte) {
	w.t.Helper()
	d := w.document(runID)
	if _, err := w.store.Commit(context.Background(), store.Update(d.Path, d.Version, d.Fields, data)); err != nil {
		w.t.Fatal(err)
	}
	return d.Data
}

// listed returns the number of conversations that ana sees.
func (w *env) listed() int {
	w.t.Helper()
	threads, _, err := w.rec.Threads(context.Background(), "ana", "", 10)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(threads)
}

// unreadable are documents from which no run can be read: broken ones, and one whose log is inconsistent.
var unreadable = map[string]string{"no run": `{"id":5}`,
	"a log that does not add up": `{"id":"x","uid":"ana","log":{"count":3}}`}

// TestDeleteQuarantined deletes conversations with a run that no process can move. The run is deleted with its
// approvals and all parts of its log, its user's open approvals are counted without it, and its audit chain still
// verifies.
func TestDeleteQuarantined(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		for name, data := range unreadable {
			t.Run(name, func(t *testing.T) {
				ctx, w := context.Background(), open(t)
				w.loop.Model = &asked{tool: "send"}
				v, err := w.loop.Start(ctx,
					loop.StartRequest{UID: "ana"},
					loop.Prompt{Text: "tell bob " + strings.Repeat("everything ", 40<<10)})
				if err != nil || v.Status != run.Awaiting {
					t.Fatalf("%v %+v; want v.Status %v", err, v, run.Awaiting)
				}
				chunk := document.ChunkPath(document.RunPath(v.RunID), "events", 1)
				if docs, err := w.store.Get(ctx, chunk); err != nil || !docs[0].Exists() {
					t.Fatalf("%v: the log was to have an older part", err)
				}
				w.setAside(v.RunID, data)
				if gone, err := w.rec.DeleteThread(ctx, "ana", v.ThreadID); err != nil || !gone {
					t.Fatalf("%t %v", gone, err)
				}
				docs, err := w.store.Get(ctx, document.RunPath(v.RunID), document.ThreadPath(v.ThreadID), chunk,
					document.ApprovalPath(run.ApprovalID(v.RunID, 1)))
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range docs {
					if d.Exists() {
						t.Errorf("%s is left", d.Path)
					}
				}
				if u, err := w.rec.User(ctx, "ana"); err != nil || u.OpenApprovals() != 0 {
					t.Errorf("%v: %d approvals count as open", err, u.OpenApprovals())
				}
				if entries, head, err := w.rec.Chain(ctx, v.RunID); err != nil || head == nil || len(entries) == 0 ||
					len(audit.Verify(entries, *head)) > 0 {
					t.Errorf("%v: the chain of %d entries is not whole", err, len(entries))
				}
				if _, err := w.loop.Advance(ctx, v.RunID, nil); !fault.Is(err, fault.Auth, fault.CodeNotFound) {
					t.Errorf("asked for after that: %v", err)
				}
			})
		}
	})
}

// midEffect makes a run whose process died between its intent and its outcome.
func (w *env) midEffect() *run.View {
	w.t.Helper()
	ctx, d := context.Background(), w.sendDef("send")
	d.Execute = func(context.Context, tool.Call, sendArgs) (sendResult, error) {
		w.did("sent")
		runtime.Goexit()
		return sendResult{}, nil
	}
	w.loop.Tools["send"] = tool.Define(d)
	w.loop.Model = &asked{tool: "send"}
	v, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "tell bob"})
	if err == nil {
		_, err = w.loop.Resolve(ctx,
			approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(v.RunID, 1), Decision: run.ApproveOnce})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	dying(func() { _ = w.deliver(ctx) })
	w.queue = nil
	w.tick(time.Hour)
	return v
}

// TestDeleteQuarantinedUnsettled quarantines a run whose effect has no outcome. The deletion of its conversation is
// refused before anything is marked, until the run was repaired and has settled the effect.
func TestDeleteQuarantinedUnsettled(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		ctx, w := context.Background(), open(t)
		v := w.midEffect()
		before := w.setAside(v.RunID, `{"id":5}`)
		_, err := w.rec.DeleteThread(ctx, "ana", v.ThreadID)
		if !fault.Is(err, fault.Policy, fault.CodeBusy) || !strings.Contains(err.Error(), "operator") ||
			w.listed() != 1 {
			t.Fatalf("an effect without an outcome: %v, %d conversations are listed", err, w.listed())
		}
		w.rewrite(v.RunID, before)
		w.settle = []string{"done"}
		if v, err := w.loop.Advance(ctx, v.RunID, nil); err != nil || v.Status != run.Completed {
			t.Fatalf("mended: %v %+v", err, v)
		}
		if gone, err := w.rec.DeleteThread(ctx, "ana", v.ThreadID); err != nil || !gone || len(w.effects) != 1 {
			t.Errorf("%t %v, %d effects", gone, err, len(w.effects))
		}
	})
}

// TestDeleteQuarantinedByEarlierRelease deletes the conversation of a run that an earlier release quarantined without
// the field "due". The deletion is refused while an effect has no outcome, and the conversation is not hidden for ever.
func TestDeleteQuarantinedByEarlierRelease(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		ctx, w := context.Background(), open(t)
		v := w.midEffect()
		w.setAside(v.RunID, `{"id":5}`)
		d := w.document(v.RunID)
		fields := maps.Clone(d.Fields)
		delete(fields, "due")
		delete(fields, "dueShard")
		if _, err := w.store.Commit(ctx, store.Update(d.Path, d.Version, fields, d.Data)); err != nil {
			t.Fatal(err)
		}
		gone, err := w.rec.DeleteThread(ctx, "ana", v.ThreadID)
		if !fault.Is(err, fault.Policy, fault.CodeBusy) || gone || w.listed() != 1 {
			t.Errorf("%t %v, and %d conversations are listed", gone, err, w.listed())
		}
	})
}

// TestDeleteDuringResume repairs and resumes a quarantined run while its conversation is being deleted, before each
// commit of the deletion. Every effect that the run starts is settled before the run is deleted. Nothing is done twice
// or after the deletion.
func TestDeleteDuringResume(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		for _, dies := range []bool{false, true} {
			for n := 1; n <= 2; n++ { // the mark, the run
				ctx, w := context.Background(), open(t)
				w.loop.Model = &asked{tool: "send"}
				v, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "tell bob"})
				if err == nil {
					_, err = w.loop.Resolve(ctx, approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(v.RunID, 1),
						Decision: run.ApproveOnce})
				}
				if err != nil {
					t.Fatal(err)
				}
				before := w.setAside(v.RunID, `{"id":5}`)
				rec := *w.rec
				rec.Store = interrupted(w.store, n, func() {
					w.rewrite(v.RunID, before)
					if !dies {
						if _, err := w.loop.Advance(ctx, v.RunID, nil); err != nil {
							t.Error(err)
						}
						return
					}
					d := w.sendDef("send")
					d.Execute = func(context.Context, tool.Call, sendArgs) (sendResult, error) {
						w.did("sent")
						runtime.Goexit()
						return sendResult{}, nil
					}
					w.loop.Tools["send"] = tool.Define(d)
					dying(func() { _, _ = w.loop.Advance(ctx, v.RunID, nil) })
				})
				gone, err := rec.DeleteThread(ctx, "ana", v.ThreadID)
				if err != nil || gone == dies || w.listed() != 0 {
					t.Fatalf("before commit %d, dies=%t: %t %v, %d listed", n, dies, gone, err, w.listed())
				}
				if dies {
					w.tick(time.Hour)
					w.settle = []string{"done"}
					if _, err := w.loop.Advance(ctx, v.RunID, nil); err != nil {
						t.Fatal(err)
					}
					_, err = w.rec.FinishDeletions(ctx)
				}
				if d := w.document(v.RunID); err != nil || d.Exists() || w.listed() != 0 || len(w.effects) != 1 {
					t.Errorf("before commit %d, dies=%t: %v, %d listed, %d effects", n, dies, err, w.listed(),
						len(w.effects))
				}
			}
		}
	})
}
