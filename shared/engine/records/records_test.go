package records_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

var began = time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)

func newRecords(t testing.TB) *records.Records {
	now := began
	st, err := embedded.OpenMemory(func() time.Time { now = now.Add(time.Millisecond); return now })
	st = cleanup.Close(t, st, err)
	return &records.Records{Store: st, Now: func() time.Time { return now }}
}

func put(t testing.TB, st store.Store, path string, fields map[string]any, v any) {
	t.Helper()
	data, err := strictjson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Commit(context.Background(), store.Create(path, fields, data)); err != nil {
		t.Fatal(err)
	}
}

// converse writes a thread of n messages in the way of the loop: a few at a time, with older parts in chunks.
func converse(t testing.TB, st store.Store, id string, n, size int) {
	t.Helper()
	th := &run.Thread{ID: id, UID: "ana", Title: "t", CreatedAt: began}
	for i := 1; i <= n; i++ {
		chunks, err := th.Add(run.Message{Role: run.RoleUser,
			Text: fmt.Sprintf("%d %s", i, strings.Repeat("x", size)), At: began})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range chunks {
			put(t, st, document.ChunkPath(document.ThreadPath(id), "messages", c.First), nil, c.Items)
		}
	}
	put(t, st, document.ThreadPath(id), map[string]any{"uid": "ana", "updatedAt": began}, th)
}

func TestMessagePages(t *testing.T) {
	ctx := context.Background()
	for _, size := range []int{10, 8_000} { // chunked by number, and by size
		r := newRecords(t)
		converse(t, r.Store, "thread-0000000001", 150, size)
		for _, limit := range []int{7, 50, 200} {
			next, before := int64(150), int64(1)<<40
			for next > 0 {
				page, err := r.Messages(ctx, "ana", "thread-0000000001", before, limit)
				if err != nil {
					t.Fatal(err)
				}
				for i := len(page.Messages) - 1; i >= 0; i-- {
					if m := page.Messages[i]; m.Seq != next || !strings.HasPrefix(m.Text, fmt.Sprint(next)) {
						t.Fatalf("limit %d: message %d where %d is due", limit, m.Seq, next)
					}
					next--
				}
				if before = page.Before; before == 0 && next != 0 {
					t.Fatalf("limit %d: the pages end at message %d", limit, next)
				}
			}
		}
	}
}

func TestDeleteThread(t *testing.T) {
	ctx := context.Background()
	r := newRecords(t)
	converse(t, r.Store, "thread-0000000001", 150, 10)
	got := run.Run{ID: "run-000000000001", UID: "ana", ThreadID: "thread-0000000001", Approvals: 1}
	fields := func(status run.Status) map[string]any {
		return map[string]any{"uid": "ana", "threadId": got.ThreadID, "status": string(status), "createdAt": began}
	}
	waiting := fields(run.Awaiting)
	waiting["due"] = began.Add(time.Hour)
	put(t, r.Store, document.RunPath(got.ID), waiting, got)
	put(t, r.Store, document.ApprovalPath(run.ApprovalID(got.ID, 1)), nil, run.Approval{})
	if _, err := r.DeleteThread(ctx, "ana", got.ThreadID); !fault.Is(err, fault.Policy, fault.CodeBusy) {
		t.Fatalf("a thread whose run waits: %v", err)
	}
	docs, err := r.Store.Get(ctx, document.RunPath(got.ID))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Store.Commit(ctx,
		store.Update(docs[0].Path, docs[0].Version, fields(run.Completed), docs[0].Data)); err != nil {
		t.Fatal(err)
	}
	if gone, err := r.DeleteThread(ctx, "ana", got.ThreadID); err != nil || !gone {
		t.Fatal(gone, err)
	}
	left, err := r.Store.Get(ctx, document.ThreadPath(got.ThreadID), document.RunPath(got.ID),
		document.ApprovalPath(run.ApprovalID(got.ID, 1)),
		document.ChunkPath(document.ThreadPath(got.ThreadID), "messages", 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range left {
		if d.Exists() {
			t.Errorf("%s is still there", d.Path)
		}
	}
}

func TestDisallow(t *testing.T) {
	ctx := context.Background()
	r := newRecords(t)
	entry := policy.Entry{ID: policy.EntryID("ana", "mail", "bob@x.org"), Tool: "mail", Recipient: "bob@x.org",
		CreatedAt: began, ExpiresAt: began.Add(time.Hour)}
	put(t, r.Store, document.UserPath("ana"), nil, run.User{UID: "ana", Allow: []policy.Entry{entry},
		ApprovalCount: run.ApprovalCount{Open: 2}})
	if err := r.Disallow(ctx, "eve", entry.ID, ""); !fault.Is(err, fault.Auth, fault.CodeNotFound) {
		t.Fatalf("another user's entry: %v", err)
	}
	if err := r.Disallow(ctx, "ana", entry.ID, ""); err != nil {
		t.Fatal(err)
	}
	if list, err := r.Allowlist(ctx, "ana"); err != nil || len(list) != 0 {
		t.Fatalf("%v %v; want len(list) 0", list, err)
	}
	if err := r.Disallow(ctx, "ana", entry.ID, ""); !fault.Is(err, fault.Auth, fault.CodeNotFound) {
		t.Fatalf("the entry is gone: %v", err)
	}
}

func TestStoreDown(t *testing.T) {
	ctx := context.Background()
	down := faulty.Wrap(nil, faulty.Fail(errors.Join(store.ErrUnavailable, errors.New("refused"))))
	r := &records.Records{Store: down, Now: func() time.Time { return began }}
	_, _, pending := r.Pending(ctx, "ana", "", 10)
	_, _, threads := r.Threads(ctx, "ana", "", 10)
	_, messages := r.Messages(ctx, "ana", "thread-0000000001", 1, 10)
	_, audit := r.Audit(ctx, "ana", "", "", 10)
	_, allow := r.Allowlist(ctx, "ana")
	_, deleted := r.DeleteThread(ctx, "ana", "thread-0000000001")
	_, swept := r.FinishDeletions(ctx)
	for name, err := range map[string]error{"pending": pending, "threads": threads, "messages": messages,
		"audit": audit, "allowlist": allow,
		"delete": deleted, "sweep": swept, "export": r.Export(ctx, "ana", func(records.Item) error { return nil }),
		"disallow": r.Disallow(ctx, "ana", "x", ""), "read": r.CheckReader(ctx, "ana")} {
		if f := fault.As(err); f.Status() != 503 || f.RetryAfter == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzCursor(f *testing.F) {
	for _, s := range []string{"", "!", "dDIwMjctMDMtMDFUMDk6MDA6MDBaIGFiYw", "bjEgYWJj", "dCA",
		"bjk5OTk5OTk5OTk5OTk5OTk5OTk5IGE"} {
		f.Add(s)
	}
	r := newRecords(f)
	f.Fuzz(func(t *testing.T, cursor string) {
		_, _, err := r.Pending(context.Background(), "ana", cursor, 10)
		if err != nil && !fault.Is(err, fault.Validation, "invalid") {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	})
}

// TestSetTitle sets titles. A title is one visible line, only for the owner's conversation, and does not move the
// conversation in the list. If a run wins the race, the commit is retried.
func TestSetTitle(t *testing.T) {
	ctx := context.Background()
	r := newRecords(t)
	const id = "thread-0000000001"
	converse(t, r.Store, id, 3, 10)
	races := 2
	st := r.Store
	r.Store = faulty.Wrap(st, func(ctx context.Context, c *faulty.Call, next faulty.Next) error {
		if c.Method == faulty.Commit && races > 0 {
			races--
			return store.ErrConflict
		}
		return next(ctx)
	})
	v, err := r.Rename(ctx, "ana", id, "  Die Vorführung ")
	if err != nil || v.Title != "Die Vorführung" || races != 0 {
		t.Fatalf("renamed to %+v, %v", v, err)
	}
	list, _, err := r.Threads(ctx, "ana", "", 10)
	if err != nil || len(list) != 1 || list[0] != v || !v.UpdatedAt.Equal(began) {
		t.Errorf("listed as %+v, %v", list, err)
	}
	var th run.Thread
	if _, err := document.Get(ctx, st, document.ThreadPath(id), &th); err != nil {
		t.Fatal(err)
	}
	if th.Entitle("Mail to bob@example.com"); th.Title != "Die Vorführung" {
		t.Errorf("what was done has called it %q", th.Title)
	}
	for _, title := range []string{"", " \u200b", "two\nlines", "left\u202eright", strings.Repeat("ü", 41)} {
		if _, err := r.Rename(ctx, "ana", id, title); !fault.Is(err, fault.Validation, "invalid") {
			t.Errorf("%q: %v; want error %v invalid", title, err, fault.Validation)
		}
	}
	if _, err := r.Rename(ctx, "eve", id, "mine"); !fault.Is(err, fault.Auth, fault.CodeNotFound) {
		t.Errorf("another user: %v", err)
	}
}
