package storetest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/store"
)

// universe is small, so that commits often touch the same documents.
var universe = []string{"runs/a", "runs/b", "runs/c", "runs/a/events/1", "threads/a", "threads/b", "approvals/a",
	"approvals/b", "audit/a", "audit/b", "audit/c", "queue/a"}

// model is a store in a map, with every version that each path has had. It never uses the version of one path for
// another, which no program can have read. The emulator would accept the version of a commit's other document for a
// deleted document.
type model struct {
	st    store.Store
	docs  map[string]store.Doc
	given map[string][]time.Time
	last  time.Time // the latest version of all paths
}

// testModel runs random commits, reads and queries on the store and on the model, and compares the results.
func testModel(t *testing.T, st store.Store) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{st: st, docs: map[string]store.Doc{}, given: map[string][]time.Time{}}
		defer m.wipe(t)
		rt.Repeat(map[string]func(*rapid.T){"commit": m.commit, "get": m.get, "query": m.query})
	})
}

// wipe empties the store for the next sequence. The test's own context may have ended if rapid stops early.
func (m *model) wipe(t *testing.T) {
	var writes []store.Write
	for _, p := range universe {
		writes = append(writes, store.Delete(p, time.Time{}))
	}
	if _, err := m.st.Commit(context.WithoutCancel(t.Context()), writes...); err != nil {
		t.Errorf("wipe: %v", err)
	}
}

func (m *model) commit(t *rapid.T) {
	var writes []store.Write
	for _, p := range rapid.SliceOfNDistinct(rapid.SampledFrom(universe), 1, 4, rapid.ID).Draw(t, "paths") {
		writes = append(writes, m.write(t, p))
	}
	conflict := slices.ContainsFunc(writes, func(w store.Write) bool { return !m.holds(w) })
	versions, err := m.st.Commit(t.Context(), writes...)
	if conflict {
		if !errors.Is(err, store.ErrConflict) {
			t.Fatalf("commit gave %v, want a conflict", err)
		}
		return
	}
	if err != nil {
		t.Fatalf("commit: %v", err)
	}
	last := m.last
	for i, w := range writes {
		switch {
		case w.Op == store.OpDelete:
			delete(m.docs, w.Doc.Path)
			continue
		case w.Op == store.OpCheck && versions[i].Equal(w.Doc.Version):
			continue
		}
		if !versions[i].After(last) {
			t.Fatalf("version %v is not after %v", versions[i], last)
		}
		w.Doc.Version = versions[i]
		m.docs[w.Doc.Path] = w.Doc
		m.given[w.Doc.Path] = append(m.given[w.Doc.Path], versions[i])
		m.last = versions[i]
	}
}

// write returns a random write that is valid for the document, or an invalid one.
func (m *model) write(t *rapid.T, path string) store.Write {
	current := m.docs[path]
	version := current.Version
	if version.IsZero() || rapid.IntRange(0, 9).Draw(t, "stale") == 0 {
		version = rapid.SampledFrom(append([]time.Time{time.UnixMicro(1).UTC()}, m.given[path]...)).Draw(t, "version")
	}
	data := []byte(rapid.SampledFrom([]string{"", "{}", `{"a": 1}`}).Draw(t, "data"))
	right := 6
	if current.Exists() {
		right = 2
	}
	switch n := rapid.IntRange(0, 9).Draw(t, "op"); {
	case n < right:
		return store.Create(path, drawFields(t), data)
	case n < 7:
		return store.Update(path, version, drawFields(t), data)
	case n < 8:
		return store.Check(path, version)
	case n < 9:
		return store.Delete(path, version)
	}
	return store.Delete(path, time.Time{})
}

func (m *model) holds(w store.Write) bool {
	current := m.docs[w.Doc.Path]
	switch {
	case w.Op == store.OpCreate:
		return !current.Exists()
	case w.Op == store.OpDelete && w.Doc.Version.IsZero():
		return true
	}
	return current.Exists() && current.Version.Equal(w.Doc.Version)
}

var (
	anyName  = rapid.SampledFrom([]string{"v", "w"})
	anyOrder = rapid.SampledFrom([]any{false, int64(-1), int64(1), int64(1), epoch, epoch, epoch.Add(time.Microsecond),
		epoch.Add(time.Hour), "v", "w"})
)

func drawFields(t *rapid.T) fields {
	f := fields{}
	for _, name := range []string{"uid", "threadId", "runId", "status", "dueShard"} {
		if rapid.IntRange(0, 4).Draw(t, name) > 0 {
			f[name] = anyName.Draw(t, name)
		}
	}
	for _, name := range []string{"due", "createdAt", "requestedAt", "updatedAt", "at", "seq"} {
		if rapid.IntRange(0, 4).Draw(t, name) > 0 {
			f[name] = anyOrder.Draw(t, name)
		}
	}
	return f
}

func (m *model) get(t *rapid.T) {
	want := rapid.SliceOfN(rapid.SampledFrom(universe), 1, 5).Draw(t, "paths")
	docs, err := m.st.Get(t.Context(), want...)
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	for i, d := range docs {
		if d.Path != want[i] || d.ReadTime.Before(m.last) {
			t.Fatalf("got %s read at %v, want %s not before %v", d.Path, d.ReadTime, want[i], m.last)
		}
		m.same(t, d, m.docs[want[i]])
	}
}

func (m *model) same(t *rapid.T, got, want store.Doc) {
	if !got.Version.Equal(want.Version) || string(got.Data) != string(want.Data) ||
		!reflect.DeepEqual(got.Fields, want.Fields) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
}

func (m *model) query(t *rapid.T) {
	x := rapid.SampledFrom(store.Indexes).Draw(t, "index")
	q := store.Query{Collection: x.Collection, OrderBy: x.OrderBy, Desc: x.Desc,
		Limit: rapid.IntRange(1, 4).Draw(t, "limit")}
	for _, f := range x.Equal {
		q.Where = append(q.Where, store.Filter{Field: f, Op: "==", Value: anyName.Draw(t, f)})
	}
	ops := []string{"", "<=", ">="}
	if x.OrderBy == store.ByName {
		ops = ops[:1]
	}
	if op := rapid.SampledFrom(ops).Draw(t, "range"); op != "" {
		q.Where = append(q.Where, store.Filter{Field: x.OrderBy, Op: op, Value: anyOrder.Draw(t, "bound")})
	}
	if rapid.Bool().Draw(t, "after") {
		q.After = &store.Cursor{Value: anyOrder.Draw(t, "cursor"),
			ID: rapid.SampledFrom([]string{"a", "aa", "b"}).Draw(t, "id")}
		if x.OrderBy == store.ByName {
			q.After.Value = nil
		}
	}
	docs, err := m.st.Query(t.Context(), q)
	if err != nil {
		t.Fatalf("query: %v", err)
	}
	want := m.answer(q)
	if !slices.Equal(paths(docs), paths(want)) {
		t.Fatalf("%+v\ngot  %v\nwant %v", q, paths(docs), paths(want))
	}
	for i := range docs {
		m.same(t, docs[i], want[i])
	}
}

func (m *model) answer(q store.Query) []store.Doc {
	turn := 1
	if q.Desc {
		turn = -1
	}
	order := func(a store.Doc, value any, id string) int {
		_, own := store.SplitPath(a.Path)
		if q.OrderBy == store.ByName {
			return cmp.Compare(own, id)
		}
		return turn * cmp.Or(compare(a.Fields[q.OrderBy], value), cmp.Compare(own, id))
	}
	matches := func(d store.Doc) bool {
		collection, _ := store.SplitPath(d.Path)
		if collection != q.Collection || q.OrderBy != store.ByName && d.Fields[q.OrderBy] == nil || q.After != nil &&
			order(d, q.After.Value, q.After.ID) <= 0 {
			return false
		}
		return !slices.ContainsFunc(q.Where, func(f store.Filter) bool {
			v := d.Fields[f.Field]
			if v == nil || rank(v) != rank(f.Value) {
				return true
			}
			c := compare(v, f.Value)
			return f.Op == "==" && c != 0 || f.Op == "<=" && c > 0 || f.Op == ">=" && c < 0
		})
	}
	var out []store.Doc
	for _, d := range slices.Collect(maps.Values(m.docs)) {
		if matches(d) {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b store.Doc) int {
		_, id := store.SplitPath(b.Path)
		return order(a, b.Fields[q.OrderBy], id)
	})
	return out[:min(len(out), q.Limit)]
}

func rank(v any) int {
	return slices.Index([]reflect.Type{reflect.TypeFor[bool](), reflect.TypeFor[int64](), reflect.TypeFor[time.Time](),
		reflect.TypeFor[string]()}, reflect.TypeOf(v))
}

func compare(a, b any) int {
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c
	}
	switch a := a.(type) {
	case bool:
		return strings.Compare(map[bool]string{true: "1"}[a], map[bool]string{true: "1"}[b.(bool)])
	case int64:
		return cmp.Compare(a, b.(int64))
	case time.Time:
		return a.Compare(b.(time.Time))
	}
	return strings.Compare(a.(string), b.(string))
}
