package records_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/store/firestore"
	"github.com/countersign-run/countersign/shared/store/output"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// onEachStore runs a test on both stores; open creates an empty one.
func onEachStore(t *testing.T, test func(t *testing.T, open func(testing.TB) *recorder)) {
	t.Run("embedded", func(t *testing.T) {
		test(t, func(t testing.TB) *recorder {
			st, err := embedded.OpenMemory(time.Now)
			return record(t, st, err)
		})
	})
	t.Run("firestore", func(t *testing.T) {
		t.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(t))
		test(t, func(t testing.TB) *recorder {
			st, err := firestore.Open(t.Context(), "demo-"+strings.ToLower(rand.Text()), "")
			w := record(t, st, err)
			w.warm(t)
			return w
		})
	})
}

// warm waits for an emulator whose first commits take longer than the store's clients wait.
func (w *recorder) warm(t testing.TB) {
	t.Helper()
	for try := 0; ; try++ {
		_, err := w.Store.Commit(t.Context(), store.Delete("warm/up", time.Time{}))
		if err == nil {
			return
		}
		if try == 10 {
			t.Fatal(err)
		}
	}
}

// recorder is a store that records which documents were written.
type recorder struct{ *faulty.Recorder }

func record(t testing.TB, st store.Store, err error) *recorder {
	cleanup.Close(t, st, err)
	return &recorder{faulty.Record(st)}
}

func (w *recorder) records() *records.Records { return &records.Records{Store: w, Now: time.Now} }

const (
	long    = "thread-0000000001"
	endless = 900 // message parts of a long conversation: more than one commit or read takes
)

// converseAtLength writes a conversation of ana with n parts and two ended runs. One run has an approval and an output
// of more than one document.
func converseAtLength(t testing.TB, w *recorder, n int) {
	t.Helper()
	th := &run.Thread{ID: long, UID: "ana", Title: "t", CreatedAt: began, UpdatedAt: began}
	var writes []store.Write
	add := func(path string, fields map[string]any, v any) {
		data, err := strictjson.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		writes = append(writes, store.Create(path, fields, data))
	}
	message := func(i int) run.Message {
		return run.Message{Seq: int64(i), Role: run.RoleUser, Text: fmt.Sprintf("%d secret", i), At: began}
	}
	for i := 1; i <= n; i++ {
		th.Log.Chunks = append(th.Log.Chunks, int64(i))
		add(document.ChunkPath(document.ThreadPath(long), "messages", int64(i)), nil, []run.Message{message(i)})
	}
	th.Log.Tail, th.Log.Count = []run.Message{message(n + 1)}, int64(n+1)
	add(document.ThreadPath(long), document.ThreadFields{UID: "ana", UpdatedAt: began}.Map(long), th)
	for i := 1; i <= 2; i++ {
		r := run.Run{ID: fmt.Sprintf("run-00000000000%d", i), UID: "ana", ThreadID: long, CreatedAt: began,
			Approvals: i - 1}
		var e audit.Entry
		e, r.Audit = audit.Seal(r.Audit, audit.Entry{RunID: r.ID, UID: "ana", At: began, Kind: audit.Requested})
		add(document.AuditPath(r.ID, 1), e.Fields(), e)
		for a := range r.Approvals {
			id := run.ApprovalID(r.ID, a+1)
			add(document.ApprovalPath(id), map[string]any{"uid": "ana", "status": "approved", "requestedAt": began},
				run.Approval{ID: id, UID: "ana", RunID: r.ID})
		}
		if i == 2 {
			r.Outputs = []string{printed, "action-0000000002"} // the second one has no output
			path, none := output.Begin(r.ID, printed)
			add(path, nil, none)
		}
		queued := run.Event{Seq: 1, At: began, Type: run.RunQueued, Queued: &run.Input{Prompt: "secret"}}
		r.Log = document.Log[run.Event]{Tail: []run.Event{queued}, Count: 1}
		add(document.RunPath(r.ID),
			map[string]any{"uid": "ana", "threadId": long, "status": "completed", "createdAt": began}, r)
	}
	for page := range slices.Chunk(writes, 100) {
		if _, err := w.Commit(t.Context(), page...); err != nil {
			t.Fatal(err)
		}
	}
	if err := prints(t, w); err != nil {
		t.Fatal(err)
	}
}

// printed is the action of the second run that has output.
const printed = "action-0000000001"

// prints adds to the output of the action.
func prints(t testing.TB, w *recorder) error {
	t.Helper()
	k, err := output.Read(t.Context(), w, "run-000000000002", printed)
	if err != nil {
		t.Fatal(err)
	}
	return k.Append(t.Context(), w, k.Bytes, bytes.Repeat([]byte("secret output\n"), 10_000))
}

// TestDeleteLongConversation reads, exports and deletes a conversation with more parts than one read or commit takes.
func TestDeleteLongConversation(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *recorder) {
		w := open(t)
		converseAtLength(t, w, endless)
		r := w.records()
		page, err := r.Messages(t.Context(), "ana", long, 3, 50) // the page with the oldest messages
		if err != nil || len(page.Messages) != 2 || page.Messages[0].Seq != 1 || page.Before != 0 {
			t.Errorf("the first messages: %+v, %v", page, err)
		}
		kinds := map[string]int{}
		if err := r.Export(t.Context(), "ana", func(i records.Item) error {
			kinds[i.Kind]++
			if o, ok := i.Data.(records.Output); ok && (o.ActionID != printed || o.Bytes != 140_000 ||
				int64(len(o.Data)) != o.Bytes || i.In != "run-000000000002") {
				t.Errorf("of the output of %s in %s it has %d bytes", o.ActionID, i.In, len(o.Data))
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for kind, want := range map[string]int{records.ItemMessage: endless + 1, records.ItemRun: 2,
			records.ItemThread: 1, records.ItemOutput: 1} {
			if kinds[kind] != want {
				t.Errorf("the export has %d of %s, want %d", kinds[kind], kind, want)
			}
		}
		if gone, err := r.DeleteThread(t.Context(), "ana", long); err != nil || !gone {
			t.Fatalf("%t %v", gone, err)
		}
		onlyAudit(t, w, audit.Exported, audit.Deletion, audit.Deleted)
		if err := prints(t, w); !errors.Is(err, output.ErrGone) {
			t.Errorf("what was deleted is written on: %v", err)
		}
	})
}

// TestDeleteDuringOutput lets a process that was paused for long continue to write while its run's output is deleted.
// No output must remain.
func TestDeleteDuringOutput(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *recorder) {
		w := open(t)
		converseAtLength(t, w, 1)
		w.Set(faulty.Commits(faulty.Nth(2, faulty.Before(func(*faulty.Call) {
			w.Set()
			if err := prints(t, w); err != nil {
				t.Error(err)
			}
		}))))
		ask(t, w)
		onlyAudit(t, w, audit.Deletion, audit.Deleted)
	})
}

// onlyAudit checks that only the audit log is left, and that ana's own chain is intact with entries of these kinds.
func onlyAudit(t *testing.T, w *recorder, kinds ...string) {
	t.Helper()
	left, err := w.Left(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range left {
		p := d.Path
		if !strings.HasPrefix(p, "audit/") && !strings.HasPrefix(p, "audit_heads/") && p != document.UserPath("ana") {
			t.Errorf("%s is left", p)
		}
	}
	ownChain(t, w, "ana", kinds...)
	for i := 1; i <= 2; i++ {
		entries, head, err := w.records().Chain(t.Context(), fmt.Sprintf("run-00000000000%d", i))
		if err != nil || head == nil || len(audit.Verify(entries, *head)) > 0 || len(entries) != 1 {
			t.Errorf("run %d: the chain is not whole: %v %+v", i, err, entries)
		}
	}
}

// ownChain returns the user's own chain. The chain must be intact, hold no content, and have entries of these kinds, in
// order.
func ownChain(t *testing.T, w *recorder, uid string, kinds ...string) []audit.Entry {
	t.Helper()
	entries, head, err := w.records().Chain(t.Context(), audit.UserChain(uid))
	if err != nil || head == nil {
		t.Fatalf("the user's own chain has no end: %v", err)
	}
	if wrong := audit.Verify(entries, *head); len(wrong) > 0 {
		t.Errorf("the user's own chain: %v", wrong)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Kind)
		if b, err := json.Marshal(e); err != nil || strings.Contains(string(b), "secret") ||
			strings.Contains(string(b), "@") || e.UID != uid {
			t.Errorf("entry %s, %v", b, err)
		}
	}
	if !slices.Equal(got, kinds) {
		t.Errorf("the user's own chain has %q, want %q", got, kinds)
	}
	return entries
}

// TestDeletionKilledAtEveryCommit kills a deletion before and after each of its commits. After the first commit the
// conversation does not exist for its user, and the sweep finishes the deletion. Before, the conversation is unchanged.
func TestDeletionKilledAtEveryCommit(t *testing.T) {
	killedAtEveryCommit(t, func(t *testing.T, w *recorder, n int, after bool) bool {
		converseAtLength(t, w, endless)
		w.Set(faulty.Commits(faulty.Nth(n, faulty.Kill(after))))
		died := faulty.Dies(func() { _, _ = w.records().DeleteThread(t.Context(), "ana", long) })
		if died == (n > 7) { // the mark, an output, two runs, two pages of messages, the thread
			t.Fatalf("commit %d: killed: %t", n, died)
		}
		w.Set()
		begun := n > 1 || after
		seen(t, w, !begun)
		d, err := w.records().FinishDeletions(t.Context())
		if err != nil || (d.Begun == 1) != (begun && (n < 7 || !after) && died) || d.Gone != d.Begun {
			t.Fatalf("the sweep found %+v, %v", d, err)
		}
		if !begun {
			ask(t, w)
		}
		onlyAudit(t, w, audit.Deletion, audit.Deleted)
		return died
	})
}

// killedAtEveryCommit runs a test for each commit of a deletion, on each store: one time for a kill before the commit,
// one for a kill after it. The test returns whether the process died. The run in which it did not is the last one.
func killedAtEveryCommit(t *testing.T, test func(t *testing.T, w *recorder, n int, after bool) (died bool)) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *recorder) {
		for _, after := range []bool{false, true} {
			for n, died := 1, true; died; n++ {
				died = false
				t.Run(fmt.Sprintf("after=%t/%d", after, n), func(t *testing.T) { died = test(t, open(t), n, after) })
				if t.Failed() {
					return
				}
			}
		}
	})
}

func ask(t *testing.T, w *recorder) {
	t.Helper()
	if gone, err := w.records().DeleteThread(t.Context(), "ana", long); err != nil || !gone {
		t.Fatalf("%t %v", gone, err)
	}
}

// seen checks whether ana can see her conversation.
func seen(t *testing.T, w *recorder, want bool) {
	t.Helper()
	r := w.records()
	threads, _, err := r.Threads(t.Context(), "ana", "", 10)
	if err != nil || (len(threads) == 1) != want {
		t.Errorf("%d conversations are listed: %v", len(threads), err)
	}
	_, err = r.Messages(t.Context(), "ana", long, 1<<40, 10)
	if want != (err == nil) || !want && !fault.Is(err, fault.Auth, fault.CodeNotFound) {
		t.Errorf("its messages: %v", err)
	}
	if err := r.Each(t.Context(), "ana", func(i records.Item) error {
		if !want && (i.Kind == records.ItemThread || i.Kind == records.ItemMessage) {
			t.Errorf("the export has a %s", i.Kind)
		}
		return nil
	}); err != nil {
		t.Errorf("the export: %v", err)
	}
}

// hurried is a context whose deadline is always near: it leaves less time than a deletion reserves for the answer.
type hurried struct{ context.Context }

func (hurried) Deadline() (time.Time, bool) { return time.Now().Add(3 * time.Second), true }

// TestDeletionContinued repeats an interrupted deletion, runs it in two processes at once, and runs it after a deletion
// with unreadable documents.
func TestDeletionContinued(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *recorder) {
		w := open(t)
		converseAtLength(t, w, endless)
		if gone, err := w.records().DeleteThread(hurried{t.Context()}, "ana", long); err != nil || gone {
			t.Fatalf("without time: %t %v", gone, err)
		}
		seen(t, w, false)
		if _, err := w.records().DeleteThread(t.Context(), "eve", long); !fault.Is(err, fault.Auth,
			fault.CodeNotFound) {
			t.Errorf("a stranger is told %v", err)
		}
		broken := document.ThreadFields{UID: "eve", Deleting: time.Now().Add(-time.Hour)}.Map("thread-of-nobody-1")
		if _, err := w.Commit(t.Context(),
			store.Create(document.ThreadPath("thread-of-nobody-1"), broken, []byte(`[]`))); err != nil {
			t.Fatal(err)
		}
		found := make(chan struct{}) // closed when the user's call has found the conversation
		once := sync.OnceFunc(func() { close(found) })
		w.Set(faulty.Of(func(c *faulty.Call) bool { return c.Method == faulty.Query },
			faulty.Before(func(*faulty.Call) { once() })))
		var asked sync.WaitGroup
		asked.Go(func() {
			defer once()
			ask(t, w)
		})
		<-found
		swept, failed := w.records().FinishDeletions(t.Context())
		asked.Wait()
		w.Set()
		if failed == nil || swept.Begun < 1 || !strings.Contains(failed.Error(), "thread-of-nobody-1") {
			t.Errorf("the sweep says %+v, %v", swept, failed)
		}
		if d, err := w.records().FinishDeletions(t.Context()); err != nil || d.Begun != 0 {
			t.Errorf("what cannot be read is tried at once again: %+v %v", d, err)
		}
		if _, err := w.Commit(t.Context(),
			store.Delete(document.ThreadPath("thread-of-nobody-1"), time.Time{})); err != nil {
			t.Fatal(err)
		}
		onlyAudit(t, w, audit.Deletion, audit.Deleted)
	})
}

// TestErasureKilledAtEveryCommit deletes a user with a long conversation and a conversation whose deletion has begun.
// The process is killed before and after each commit. After a repeated call, only the audit log and the fact that the
// user is disabled remain.
func TestErasureKilledAtEveryCommit(t *testing.T) {
	killedAtEveryCommit(t, func(t *testing.T, w *recorder, n int, after bool) bool {
		converseAtLength(t, w, 450)
		put(t, w, document.ThreadPath("thread-0000000002"), map[string]any{"uid": "ana", "deleting": began},
			run.Thread{ID: "thread-0000000002", UID: "ana", Deleting: true})
		put(t, w, document.NotesPath("ana"), nil,
			run.Memory{UID: "ana", Notes: []run.Note{{ID: "n", Text: "t"}}})
		if changed, err := w.records().SetDisabled(t.Context(), "ana", true); err != nil || !changed {
			t.Fatal(changed, err)
		}
		w.Set(faulty.Commits(faulty.Nth(n, faulty.Kill(after))))
		died := faulty.Dies(func() { _ = w.records().Erase(t.Context(), "ana") })
		w.Set()
		if err := w.records().Each(t.Context(), "ana",
			func(records.Item) error { return nil }); err != nil {
			t.Errorf("the export in between: %v", err)
		}
		for range 2 {
			if err := w.records().Erase(t.Context(), "ana"); err != nil {
				t.Fatal(err)
			}
		}
		u, err := w.records().User(t.Context(), "ana")
		if err != nil || !reflect.DeepEqual(u, run.User{UID: "ana", Disabled: true}) {
			t.Errorf("the lock is %+v, %v", u, err)
		}
		// the mark, an output, two runs, a page of messages, two threads, the notes, the user's document
		if died == (n > 9) {
			t.Fatalf("commit %d: killed: %t", n, died)
		}
		onlyAudit(t, w, audit.Disabled, audit.Deletion, audit.Deleted, audit.Deleted)
		return died
	})
}

// TestOwnChain checks that the user's own chain records everything that happens outside of runs, without an address.
func TestOwnChain(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *recorder) {
		w := open(t)
		r := w.records()
		id := policy.EntryID("ana", "mail", "bob@x.org")
		put(t, w, document.UserPath("ana"), nil,
			run.User{UID: "ana", Allow: []policy.Entry{{ID: id, Tool: "mail", Recipient: "bob@x.org"}}})
		if err := r.Disallow(t.Context(), "ana", id, ""); err != nil {
			t.Fatal(err)
		}
		for _, out := range []bool{true, true, false, false} {
			if _, err := r.SetDisabled(t.Context(), "ana", out); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Export(t.Context(), "ana", func(records.Item) error { return nil }); err != nil {
			t.Fatal(err)
		}
		entries := ownChain(t, w, "ana", audit.Withdrew, audit.Disabled, audit.Enabled, audit.Exported)
		if e := entries[0]; e.Tool != "mail" || e.InputHash == "" || e.InputHash == id || e.Ref == id {
			t.Errorf("the always-allow that was taken back is %+v", e)
		}
		page, err := r.Audit(t.Context(), "ana", audit.UserChain("ana"), "", 10)
		if err != nil || len(page.Entries) != 4 || page.Head == nil || len(audit.Verify(page.Entries, *page.Head)) > 0 {
			t.Errorf("her own page of it: %+v %v", page, err)
		}
		if _, err := r.Audit(t.Context(), "eve", audit.UserChain("ana"), "", 10); !fault.Is(err, fault.Auth,
			fault.CodeNotFound) {
			t.Errorf("a stranger is told %v", err)
		}
		if page, err := r.Audit(t.Context(), "ana", "", "", 10); err != nil || len(page.Entries) != 4 {
			t.Errorf("among all of hers: %d entries, %v", len(page.Entries), err)
		}
	})
}
