package document_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var at = time.Date(2027, 1, 5, 10, 0, 0, 1000, time.UTC)

// queries returns all queries of the package.
func queries() []store.Query {
	return []store.Query{
		document.DueRuns(7, at, 2), document.WaitingRuns(7, 2), document.AllRuns(2), document.AllThreads(2),
		document.RunsOf("ana", 2),
		document.RunsOfThread("ana", "t", 2),
		document.ApprovalsOf("ana", "open", 2), document.ThreadsOf("ana", 2), document.Deletions(7, at, 2),
		document.UnusedThreads(7, at, 2),
		document.DeletionsOf("ana", 2), document.AuditOf("ana", 2), document.AuditOfChain("r", 2),
		document.AuditOfChainOf("ana", "r", 2), document.AllAudit(2), document.AllAuditHeads(2),
		document.AuditSince(at, 2), document.AllUsers(2), document.AllHosts(2),
		document.UploadsOf("ana", 2), document.UnusedUploadsOf("ana", 2), document.DueUploads(7, at, 2),
		document.EndedConsents(at, 2), document.DueMessages(at, 2), document.AllMessages(2),
	}
}

// TestIndexesOfQueries checks that every query has its index and every index is needed by a query.
func TestIndexesOfQueries(t *testing.T) {
	unused := slices.Clone(store.Indexes)
	for _, q := range queries() {
		index, err := store.CheckQuery(q)
		if err != nil {
			t.Errorf("%+v: %v", q, err)
		}
		unused = slices.DeleteFunc(unused, func(i store.Index) bool { return reflect.DeepEqual(i, index) })
	}
	for _, i := range unused {
		t.Errorf("no query needs the index %+v", i)
	}
}

// TestFieldsReadBack stores the fields of each kind, full and empty, and finds the documents by them.
func TestFieldsReadBack(t *testing.T) {
	st := memory.New(func() time.Time { return at })
	run := document.RunFields{UID: "ana", ThreadID: "t", Status: "queued", CreatedAt: at, Due: at, Tries: 3,
		Quarantined: true}
	quarantined := document.RunFields{UID: "ana", ThreadID: "t", CreatedAt: at.Add(-1e9), Due: document.Never,
		Quarantined: true}
	ended := document.RunFields{UID: "ana", ThreadID: "t", Status: "failed", CreatedAt: at}
	approval := document.ApprovalFields{UID: "ana", RunID: "r", ThreadID: "t", Status: "open", RequestedAt: at,
		ExpiresAt: at}
	entry := document.AuditFields{UID: "ana", RunID: "r", Seq: 1, At: at, ExpireAt: at}
	shown := document.ThreadFields{UID: "ana", UpdatedAt: at}
	deleting := document.ThreadFields{UID: "ana", Deleting: at}
	commit(t, st,
		store.Create(document.RunPath("r"), run.Map("r"), nil),
		store.Create(document.RunPath("ended"), ended.Map("ended"), nil),
		store.Create(document.RunPath("aside"), quarantined.Map("aside"), nil),
		store.Create(document.ApprovalPath("r-1"), approval.Map(), nil),
		store.Create(document.AuditPath("r", 1), entry.Map(), nil),
		store.Create(document.AuditHeadPath("user-1"), document.AuditHeadFields(at, at), nil),
		store.Create(document.UserPath("ana"), nil, nil),
		store.Create(document.HostPath("ana", "h"), nil, nil),
		store.Create(document.ThreadPath("t"), shown.Map("t"), nil),
		store.Create(document.ThreadPath("gone"), deleting.Map("gone"), nil),
		store.Create("oauth_states/c", document.ConsentFields(at), nil),
		store.Create("queue/m", document.MessageFields(at), nil))
	for _, want := range []struct {
		q     store.Query
		paths []string
	}{
		{document.DueRuns(document.Shard("r"), at, 9), []string{"runs/r"}},
		{document.DueRuns(document.Shard("r")+1, at, 9), nil},
		{document.DueRuns(document.Shard("r"), at.Add(-time.Second), 9), nil},
		{document.AllRuns(9), []string{"runs/aside", "runs/ended", "runs/r"}},
		{document.UnusedThreads(document.Shard("t"), at, 9), []string{"threads/t"}},
		{document.UnusedThreads(document.Shard("gone"), at, 9), nil},
		{document.AllThreads(9), []string{"threads/gone", "threads/t"}},
		{document.Deletions(document.Shard("gone"), at, 9), []string{"threads/gone"}},
		{document.WaitingRuns(document.Shard("r"), 9), []string{"runs/r"}},
		{document.WaitingRuns(document.Shard("aside"), 9), nil},
		{document.RunsOfThread("ana", "t", 9), []string{"runs/r", "runs/ended", "runs/aside"}},
		{document.RunsOfThread("eve", "t", 9), nil},
		{document.ApprovalsOf("ana", "open", 9), []string{"approvals/r-1"}},
		{document.AuditOfChainOf("ana", "r", 9), []string{"audit/r_000001"}},
		{document.AllAuditHeads(9), []string{"audit_heads/user-1"}},
		{document.AllUsers(9), []string{document.UserPath("ana")}},
		{document.AllHosts(9), []string{document.HostPath("ana", "h")}},
		{document.ThreadsOf("ana", 9), []string{"threads/t"}},
		{document.DeletionsOf("ana", 9), []string{"threads/gone"}},
		{document.EndedConsents(at, 9), []string{"oauth_states/c"}},
		{document.DueMessages(at, 9), []string{"queue/m"}},
	} {
		var paths []string
		for d, err := range document.All(t.Context(), st, want.q) {
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, d.Path)
		}
		if !slices.Equal(paths, want.paths) {
			t.Errorf("%s by %s: %v, want %v", want.q.Collection, want.q.OrderBy, paths, want.paths)
		}
	}
	get := func(path string) store.Doc { return one(t, st, path) }
	if got := document.RunFieldsOf(get("runs/r")); got != run {
		t.Errorf("the run's fields read back as %+v", got)
	}
	if got := document.RunFieldsOf(get("runs/ended")); got != ended {
		t.Errorf("the ended run's fields read back as %+v", got)
	}
	if got := document.ThreadFieldsOf(get("threads/gone")); got != deleting {
		t.Errorf("the thread's fields read back as %+v", got)
	}
	if got := document.ApprovalFieldsOf(get("approvals/r-1")); got != approval {
		t.Errorf("the approval's fields read back as %+v", got)
	}
	if got := document.AuditFieldsOf(get("audit/r_000001")); got != entry {
		t.Errorf("the entry's fields read back as %+v", got)
	}
	if got := document.ConsentEnds(get("oauth_states/c")); !got.Equal(at) {
		t.Errorf("the consent ends at %v", got)
	}
}

func TestFieldsAbsentOrStrange(t *testing.T) {
	d := store.Doc{Path: "runs/r", Fields: map[string]any{"uid": int64(7), "due": "soon"}}
	if got := document.RunFieldsOf(d); got != (document.RunFields{}) {
		t.Errorf("%+v", got)
	}
}

// TestPages reads lists of every length around the page size, to the end and in part.
func TestPages(t *testing.T) {
	for n := range 8 {
		st := memory.New(func() time.Time { return at })
		for i := range n {
			f := document.RunFields{UID: "ana", CreatedAt: at.Add(time.Duration(i/2) * time.Second)} // ties, too
			commit(t, st, store.Create(document.RunPath(fmt.Sprint("r", i)), f.Map(fmt.Sprint("r", i)), nil))
		}
		var ids []string
		for d, err := range document.All(t.Context(), st, document.AllRuns(3)) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, document.ID(d))
		}
		if len(ids) != n || !slices.IsSorted(ids) {
			t.Errorf("%d documents read as %v", n, ids)
		}
		for range document.All(t.Context(), st, document.AllRuns(3)) {
			break
		}
	}
}

func TestLoadStoreError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	st := memory.New(func() time.Time { return at })
	n := 0
	for _, err := range document.All(ctx, st, document.AllRuns(3)) {
		if n++; err == nil {
			t.Error("a page was read though the caller was gone")
		}
	}
	if n != 1 {
		t.Errorf("%d errors", n)
	}
}

func TestGet(t *testing.T) {
	st := memory.New(func() time.Time { return at })
	commit(t, st, store.Create("runs/r", nil, []byte(`{"id":"r"}`)), store.Create("runs/bad", nil, []byte(`{`)))
	got := struct{ ID string }{"before"}
	if d, err := document.Get(t.Context(), st, "runs/none", &got); err != nil || d.Exists() || got.ID != "before" {
		t.Errorf("%v %v %v", d, err, got)
	}
	if d, err := document.Get(t.Context(), st, "runs/r", &got); err != nil || !d.Exists() || got.ID != "r" {
		t.Errorf("%v %v %v", d, err, got)
	}
	if _, err := document.Get(t.Context(), st, "runs/bad", &got); err == nil {
		t.Error("a document that is no JSON was read")
	}
}

func TestCursor(t *testing.T) {
	for _, q := range queries() {
		if q.OrderBy == store.ByName {
			continue // no client reads a whole collection in pages
		}
		d := store.Doc{Path: q.Collection + "/abc", Fields: map[string]any{q.OrderBy: at}}
		if q.OrderBy == "seq" {
			d.Fields["seq"] = int64(7)
		}
		got, err := document.ParseCursor(q, document.FormatCursor(q, d))
		if err != nil || !reflect.DeepEqual(got, document.After(q, d)) {
			t.Errorf("%s by %s: %+v, %v", q.Collection, q.OrderBy, got, err)
		}
	}
	of := document.FormatCursor(document.RunsOf("ana", 2),
		store.Doc{Path: "runs/abc", Fields: map[string]any{"createdAt": at}})
	for name, q := range map[string]store.Query{"another user's": document.RunsOf("eve", 2),
		"another list's": document.AllRuns(2)} {
		if _, err := document.ParseCursor(q, of); !errors.Is(err, document.ErrCursor) {
			t.Errorf("%s cursor: %v", name, err)
		}
	}
}

func FuzzParseCursor(f *testing.F) {
	q := document.RunsOf("ana", 2)
	f.Add(document.FormatCursor(q, store.Doc{Path: "runs/abc", Fields: map[string]any{"createdAt": at}}))
	f.Add("")
	f.Add("dCBhIGI")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := document.ParseCursor(q, s)
		if err == nil && (c.ID == "" || c.Value == nil) {
			t.Errorf("%q was read as %+v", s, c)
		}
	})
}

func commit(t *testing.T, st store.Store, writes ...store.Write) {
	t.Helper()
	if _, err := st.Commit(t.Context(), writes...); err != nil {
		t.Fatal(err)
	}
}

func one(t *testing.T, st store.Store, path string) store.Doc {
	t.Helper()
	docs, err := st.Get(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return docs[0]
}
