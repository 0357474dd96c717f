package storetest

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// asked returns a query that matches the index, with "v" for each Equal field.
func asked(x store.Index) store.Query {
	q := store.Query{Collection: x.Collection, OrderBy: x.OrderBy, Desc: x.Desc, Limit: 10}
	for _, f := range x.Equal {
		q.Where = append(q.Where, store.Filter{Field: f, Op: "==", Value: "v"})
	}
	return q
}

func found(x store.Index, order any) fields {
	f := fields{x.OrderBy: order}
	for _, name := range x.Equal {
		f[name] = "v"
	}
	return f
}

func testEveryIndex(t *testing.T, st store.Store) {
	for n, x := range store.Indexes {
		if x.OrderBy == store.ByName {
			continue // see testByName
		}
		t.Run(fmt.Sprintf("%s %v %s", x.Collection, x.Equal, x.OrderBy), func(t *testing.T) {
			// Each index has its own values, because the collections are shared.
			value := func(i int) int64 { return int64(n*100 + i) }
			path := func(i int) string { return fmt.Sprintf("%s/x%d-%d", x.Collection, n, i) }
			var writes []store.Write
			for i := range 4 {
				writes = append(writes, store.Create(path(i), found(x, value(i)), []byte(`{}`)))
			}
			for _, f := range x.Equal {
				other := found(x, value(1))
				other[f] = "w"
				writes = append(writes, store.Create(path(10)+f, other, nil))
				without := found(x, value(1))
				delete(without, f)
				writes = append(writes, store.Create(path(11)+f, without, nil))
			}
			commit(t, st, writes...)
			q := asked(x)
			q.Where = append(q.Where, store.Filter{Field: x.OrderBy, Op: ">=", Value: value(1)},
				store.Filter{Field: x.OrderBy, Op: "<=", Value: value(2)})
			want := []string{path(1), path(2)}
			if x.Desc {
				slices.Reverse(want)
			}
			if got := paths(query(t, st, q)); !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
			slices.Reverse(q.Where)
			if got := paths(query(t, st, q)); !slices.Equal(got, want) {
				t.Fatalf("with the filters turned round got %v, want %v", got, want)
			}
		})
	}
}

// refusedQueries change a valid query into one that a store refuses.
var refusedQueries = map[string]func(q *store.Query){
	"no limit":          func(q *store.Query) { q.Limit = 0 },
	"negative limit":    func(q *store.Query) { q.Limit = -1 },
	"limit too high":    func(q *store.Query) { q.Limit = store.MaxLimit + 1 },
	"other collection":  func(q *store.Query) { q.Collection = "users" },
	"no collection":     func(q *store.Query) { q.Collection = "" },
	"subcollection":     func(q *store.Query) { q.Collection = "runs/a/events" },
	"no order":          func(q *store.Query) { q.OrderBy = "" },
	"other order":       func(q *store.Query) { q.OrderBy = "updatedAt" },
	"other direction":   func(q *store.Query) { q.Desc = true },
	"equality too many": func(q *store.Query) { q.Where = []store.Filter{filter("uid", "==", "u")} },
	"time alone":        func(q *store.Query) { q.Collection = "runs" },
	"part of the equalities": func(q *store.Query) {
		q.Collection = "runs"
		q.OrderBy, q.Desc, q.Where = "createdAt", true, []store.Filter{filter("uid", "==", "u")}
	},
	"one equality twice": func(q *store.Query) {
		q.Collection = "runs"
		q.OrderBy, q.Desc, q.Where = "createdAt", true,
			[]store.Filter{filter("uid", "==", "u"), filter("uid", "==", "u")}
	},
	"range on another field": func(q *store.Query) { q.Where = []store.Filter{filter("uid", ">=", "u")} },
	"equality on the order":  func(q *store.Query) { q.Where = []store.Filter{filter("due", "==", epoch)} },
	"strict range":           func(q *store.Query) { q.Where = []store.Filter{filter("due", "<", epoch)} },
	"unequal":                func(q *store.Query) { q.Where = []store.Filter{filter("due", "!=", epoch)} },
	"two upper bounds": func(
		q *store.Query) {
		q.Where = []store.Filter{filter("due", "<=", epoch), filter("due", "<=", epoch)}
	},
	"bounds of two types": func(
		q *store.Query) {
		q.Where = []store.Filter{filter("due", ">=", epoch), filter("due", "<=", "x")}
	},
	"filter of another type":     func(q *store.Query) { q.Where = []store.Filter{filter("due", "<=", 1.5)} },
	"cursor of another type":     func(q *store.Query) { q.After = &store.Cursor{Value: 1, ID: "a"} },
	"cursor without a value":     func(q *store.Query) { q.After = &store.Cursor{ID: "a"} },
	"cursor without an id":       func(q *store.Query) { q.After = &store.Cursor{Value: epoch} },
	"cursor with a bad id":       func(q *store.Query) { q.After = &store.Cursor{Value: epoch, ID: "a/b"} },
	"cursor with a climb":        func(q *store.Query) { q.After = &store.Cursor{Value: epoch, ID: ".."} },
	"name of another collection": func(q *store.Query) { q.OrderBy = store.ByName },
	"name downwards": func(
		q *store.Query) {
		q.Collection, q.OrderBy, q.Desc = "runs", store.ByName, true
	},
	"range of names": func(q *store.Query) {
		q.Collection, q.OrderBy, q.Where = "runs", store.ByName, []store.Filter{filter(store.ByName, ">=", "a")}
	},
	"cursor by name with a value": func(q *store.Query) {
		q.Collection, q.OrderBy, q.After = "runs", store.ByName, &store.Cursor{Value: "a", ID: "a"}
	},
	"cursor with reserved id": func(q *store.Query) { q.After = &store.Cursor{Value: epoch, ID: "__id1__"} },
}

func testQueriesRefused(t *testing.T, st store.Store) {
	due := store.Query{Collection: "queue", OrderBy: "due", Limit: 1}
	for name, change := range refusedQueries {
		t.Run(name, func(t *testing.T) {
			q := due
			change(&q)
			if docs, err := st.Query(t.Context(), q); !errors.Is(err, store.ErrInvalid) || docs != nil {
				t.Fatalf("gave %d documents, %v", len(docs), err)
			}
		})
	}
	if docs := query(t, st, due); len(docs) != 0 {
		t.Fatal("an empty collection has documents")
	}
}

// ordered lists values in Firestore's order: by type, then by value, strings by their bytes.
var ordered = []any{
	false, true,
	int64(math.MinInt64), int64(-2), int64(-1), int64(0), int64(1), int64(9), int64(10), int64(math.MaxInt64),
	time.Time{}, time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC), epoch, epoch.Add(time.Microsecond),
	epoch.Add(time.Second),
	"", "\x00", "A", "a", "a\x00", "aa", "b", "z", "é", "日", "\ufeff", "😀",
}

func testOrder(t *testing.T, st store.Store) {
	var writes []store.Write
	var want []string
	for i, v := range ordered {
		// The order of the IDs is the reverse of the order of the values.
		path := fmt.Sprintf("audit/d%02d", len(ordered)-i)
		want = append(want, path)
		writes = append(writes, store.Create(path, fields{"at": v, "seq": v, "runId": "r", "uid": "u"}, nil))
	}
	commit(t, st, writes...)
	up := store.Query{Collection: "audit", OrderBy: "seq", Limit: 100,
		Where: []store.Filter{filter("runId", "==", "r")}}
	if got := paths(query(t, st, up)); !slices.Equal(got, want) {
		t.Fatalf("got  %v\nwant %v", got, want)
	}
	slices.Reverse(want)
	down := store.Query{Collection: "audit", OrderBy: "at", Desc: true, Limit: 100,
		Where: []store.Filter{filter("uid", "==", "u")}}
	if got := paths(query(t, st, down)); !slices.Equal(got, want) {
		t.Fatalf("descending got  %v\nwant %v", got, want)
	}
}

// testTies checks that documents with equal values are ordered by the bytes of their IDs, in the query's direction.
func testTies(t *testing.T, st store.Store) {
	ids := []string{"-", "0", "00", "1", "10", "2", "A", "B", "_", "a", "aa", "b", "é", "日", "😀"}
	var writes []store.Write
	for i := range ids {
		id := ids[(i*7)%len(ids)]
		writes = append(writes, store.Create("threads/"+id, fields{"uid": "u", "updatedAt": epoch}, nil),
			store.Create("queue/"+id, fields{"due": epoch}, nil))
	}
	commit(t, st, writes...)
	for _, q := range []store.Query{
		{Collection: "queue", OrderBy: "due", Limit: 100},
		{Collection: "threads", OrderBy: "updatedAt", Desc: true, Limit: 100,
			Where: []store.Filter{filter("uid", "==", "u")}},
	} {
		want := slices.Clone(ids)
		if q.Desc {
			slices.Reverse(want)
		}
		for i, d := range query(t, st, q) {
			if d.Path != q.Collection+"/"+want[i] {
				t.Fatalf("%s: place %d has %s, want %s", q.Collection, i, d.Path, want[i])
			}
		}
		if got := page(t, st, q, 4); len(got) != len(want) {
			t.Fatalf("%s: pages gave %v", q.Collection, got)
		}
	}
}

// testByName reads a whole collection in the order of its IDs, without its subcollections.
func testByName(t *testing.T, st store.Store) {
	ids := []string{"-", "0", "00", "1", "10", "2", "A", "B", "_", "a", "a-", "aa", "b", "é", "日", "😀"}
	var writes []store.Write
	var want []string
	for i, id := range ids {
		other := ids[(i*7)%len(ids)]
		want = append(want, "runs/"+id)
		writes = append(writes, store.Create("runs/"+other, fields{"due": epoch}, []byte(`{}`)),
			store.Create("runs/"+other+"/events/1", nil, nil), store.Create("audit/"+other, nil, nil))
	}
	writes = append(writes, store.Create("runs2/a", nil, nil), store.Create("other/a/runs/b", nil, nil))
	commit(t, st, writes...)
	q := store.Query{Collection: "runs", OrderBy: store.ByName, Limit: 100}
	docs := query(t, st, q)
	if !slices.Equal(paths(docs), want) || string(docs[0].Data) != "{}" || docs[0].Fields["due"] != epoch {
		t.Fatalf("got  %v\nwant %v", paths(docs), want)
	}
	for _, size := range []int{1, 3, len(want), len(want) + 1} {
		if got := page(t, st, q, size); !slices.Equal(got, want) {
			t.Fatalf("pages of %d:\ngot  %v\nwant %v", size, got, want)
		}
	}
	q.After = &store.Cursor{ID: "aaa"} // a document that does not exist
	if got := paths(query(t, st, q)); !slices.Equal(got, want[12:]) {
		t.Fatalf("behind an id that is not there: %v", got)
	}
}

// testSelect checks that a query with Select returns only the selected fields, and no data.
func testSelect(t *testing.T, st store.Store) {
	all := fields{"uid": "v", "status": "v", "requestedAt": epoch, "threadId": "t1"}
	commit(t, st, store.Create("approvals/a", all, []byte(`{"long":true}`)),
		store.Create("approvals/b", fields{"uid": "v", "status": "v", "requestedAt": epoch}, []byte(`{}`)))
	q := store.Query{Collection: "approvals", OrderBy: "requestedAt", Desc: true, Limit: 10,
		Where:  []store.Filter{{Field: "uid", Op: "==", Value: "v"}, {Field: "status", Op: "==", Value: "v"}},
		Select: []string{"threadId"}}
	docs := query(t, st, q)
	if !slices.Equal(paths(docs), []string{"approvals/b", "approvals/a"}) {
		t.Fatalf("%v", paths(docs))
	}
	for i, want := range []fields{{}, {"threadId": "t1"}} {
		if d := docs[i]; !maps.Equal(d.Fields, want) || len(d.Data) > 0 || !d.Exists() || d.ReadTime.Before(d.Version) {
			t.Errorf("%s comes as %+v", d.Path, d)
		}
	}
	if q.Select = nil; len(query(t, st, q)[1].Data) == 0 {
		t.Error("without a selection the data is missing")
	}
	q.Select = []string{store.DataField}
	if _, err := st.Query(t.Context(), q); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("unselected data is returned: %v", err)
	}
}

func testRanges(t *testing.T, st store.Store) {
	var all []fields
	for _, v := range ordered {
		all = append(all, fields{"due": v})
	}
	seedDocs(t, st, "queue", all)
	q := store.Query{Collection: "queue", OrderBy: "due", Limit: 100}
	place := func(v any) int { return slices.Index(ordered, v) }
	for _, c := range []struct {
		name        string
		from, to    any // nil means no bound
		first, last int // indexes in ordered
	}{
		{"at most a time", nil, epoch, place(time.Time{}), place(epoch)},
		{"at most a time before all", nil, epoch.Add(time.Millisecond), place(time.Time{}), place(epoch) + 1},
		{"nanoseconds are cut", nil, epoch.Add(999), place(time.Time{}), place(epoch)},
		{"at least a time", epoch, nil, place(epoch), place("") - 1},
		{"between times", epoch, epoch, place(epoch), place(epoch)},
		{"at least a number", int64(0), nil, place(int64(0)), place(int64(math.MaxInt64))},
		{"at most a number", nil, int64(-1), place(int64(math.MinInt64)), place(int64(-1))},
		{"at most false", nil, false, 0, 0},
		{"at least a text", "a", nil, place("a"), len(ordered) - 1},
		{"at most a text", nil, "a", place(""), place("a")},
		{"nothing between", int64(2), int64(8), 0, -1},
		{"from after to", int64(9), int64(1), 0, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := q
			if c.from != nil {
				q.Where = append(q.Where, store.Filter{Field: "due", Op: ">=", Value: c.from})
			}
			if c.to != nil {
				q.Where = append(q.Where, store.Filter{Field: "due", Op: "<=", Value: c.to})
			}
			var want []string
			for i := c.first; i <= c.last; i++ {
				want = append(want, fmt.Sprintf("queue/d%02d", i))
			}
			if got := paths(query(t, st, q)); !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
			if got := page(t, st, q, 2); !slices.Equal(got, want) {
				t.Fatalf("in pages got %v, want %v", got, want)
			}
		})
	}
}
