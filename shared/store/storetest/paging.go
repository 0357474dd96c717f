package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// page reads all pages of a query and returns the paths in the order of their arrival.
func page(t testing.TB, st store.Store, q store.Query, size int) []string {
	t.Helper()
	var all []string
	q.Limit = size
	for {
		docs := query(t, st, q)
		if len(docs) > size {
			t.Fatalf("a page of %d for a limit of %d", len(docs), size)
		}
		all = append(all, paths(docs)...)
		if len(docs) < size {
			return all
		}
		last := docs[len(docs)-1]
		_, id := store.SplitPath(last.Path)
		q.After = &store.Cursor{Value: last.Fields[q.OrderBy], ID: id} // by name, there is no value
		if len(all) > 10000 {
			t.Fatal("the pages do not end")
		}
	}
}

var inShard = []store.Filter{filter("dueShard", "==", int64(3))}

// testPages checks that pages return each document once, even if many share a value or the cursor's document has been
// deleted.
func testPages(t *testing.T, st store.Store) {
	var writes []store.Write
	for i := range 60 {
		at := epoch.Add(time.Duration(i/7) * time.Second)
		path := fmt.Sprintf("%02d", (i*37)%60)
		writes = append(writes,
			store.Create("runs/"+path,
				fields{"uid": "u", "threadId": "t", "createdAt": at, "due": at, "dueShard": int64(3)},
				[]byte(`{"n":1}`)),
			store.Create("approvals/"+path, fields{"uid": "u", "status": "pending", "requestedAt": at}, nil))
	}
	commit(t, st, writes...)
	for _, q := range []store.Query{
		{Collection: "runs", OrderBy: "due", Where: inShard},
		{Collection: "runs", OrderBy: "due",
			Where: []store.Filter{inShard[0], filter("due", "<=", epoch.Add(4*time.Second))}},
		{Collection: "runs", OrderBy: "createdAt", Desc: true,
			Where: []store.Filter{filter("uid", "==", "u"), filter("threadId", "==", "t")}},
		{Collection: "approvals", OrderBy: "requestedAt", Desc: true,
			Where: []store.Filter{filter("status", "==", "pending"), filter("uid", "==", "u")}},
	} {
		q.Limit = store.MaxLimit
		want := paths(query(t, st, q))
		if unique := slices.Compact(slices.Sorted(slices.Values(want))); len(unique) != len(want) || len(want) < 35 {
			t.Fatalf("the whole has %d documents, %d of them different", len(want), len(unique))
		}
		for _, size := range []int{1, 7, 8, 59, 60, 61} {
			if got := page(t, st, q, size); !slices.Equal(got, want) {
				t.Fatalf("pages of %d over %s by %s:\ngot  %v\nwant %v", size, q.Collection, q.OrderBy, got, want)
			}
		}
		q.Limit = 3
		docs := query(t, st, q)
		if string(docs[0].Data) == `{"n":1}` != (q.Collection == "runs") || !docs[0].Exists() {
			t.Fatalf("a query gave %+v", docs[0])
		}
	}
	q := store.Query{Collection: "runs", OrderBy: "due", Where: inShard, Limit: 10}
	docs := query(t, st, q)
	commit(t, st, store.Delete(docs[9].Path, time.Time{}))
	_, id := store.SplitPath(docs[9].Path)
	q.After = &store.Cursor{Value: docs[9].Fields["due"], ID: id}
	if got := page(t, st, q, 10); len(got) != 50 || slices.Contains(paths(docs), got[0]) {
		t.Fatalf("behind a deleted document %d of 50 remain", len(got))
	}
}

func testMissingField(t *testing.T, st store.Store) {
	q := store.Query{Collection: "runs", OrderBy: "due", Where: inShard, Limit: 10}
	shard := inShard[0].Value
	commit(t, st, store.Create("runs/over", fields{"uid": "u", "dueShard": shard}, nil),
		store.Create("runs/nowhere", fields{"uid": "u", "due": epoch}, nil))
	v := commit(t, st, store.Create("runs/live", fields{"uid": "u", "due": epoch, "dueShard": shard}, nil))[0]
	if got := paths(query(t, st, q)); !slices.Equal(got, []string{"runs/live"}) {
		t.Fatalf("got %v", got)
	}
	commit(t, st, store.Update("runs/live", v, fields{"uid": "u", "dueShard": shard}, nil))
	if got := paths(query(t, st, q)); len(got) != 0 {
		t.Fatalf("without the field got %v", got)
	}
}

func testCollections(t *testing.T, st store.Store) {
	var writes []store.Write
	for _, path := range []string{
		"runs/x", "runs/x/events/1", "runs/x/runs/1", "queue/x", "other/x", "other/x/runs/2", "Runs/x", "runs2/x",
		"run/x",
	} {
		writes = append(writes, store.Create(path, fields{"due": epoch, "dueShard": inShard[0].Value}, nil))
	}
	commit(t, st, writes...)
	runs := store.Query{Collection: "runs", OrderBy: "due", Where: inShard, Limit: 100}
	if got := paths(query(t, st, runs)); !slices.Equal(got, []string{"runs/x"}) {
		t.Fatalf("a query on runs found %v", got)
	}
	if got := paths(query(t, st, store.Query{Collection: "queue", OrderBy: "due", Limit: 100})); !slices.Equal(got,
		[]string{"queue/x"}) {
		t.Fatalf("a query on queue found %v", got)
	}
}

// testQueryFollows checks that a query after a commit finds what the commit wrote, and not what it changed or deleted.
func testQueryFollows(t *testing.T, st store.Store) {
	q := store.Query{Collection: "approvals", OrderBy: "requestedAt", Desc: true, Limit: 10,
		Where: []store.Filter{filter("uid", "==", "u"), filter("status", "==", "pending")}}
	pending := fields{"uid": "u", "status": "pending", "requestedAt": epoch}
	for range 5 {
		v := commit(t, st, store.Create("approvals/a", pending, []byte(`{}`)))[0]
		if docs := query(t, st, q); len(docs) != 1 || !docs[0].Version.Equal(v) ||
			docs[0].Fields["status"] != "pending" {
			t.Fatalf("after the create: %+v", docs)
		}
		v = commit(t, st, store.Update("approvals/a", v, fields{"uid": "u", "status": "approved", "requestedAt": epoch},
			nil))[0]
		if docs := query(t, st, q); len(docs) != 0 {
			t.Fatalf("after the update: %+v", docs)
		}
		v = commit(t, st, store.Update("approvals/a", v, pending, nil))[0]
		commit(t, st, store.Delete("approvals/a", v))
		if docs := query(t, st, q); len(docs) != 0 {
			t.Fatalf("after the delete: %+v", docs)
		}
	}
}
