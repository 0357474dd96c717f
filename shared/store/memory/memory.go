// Package memory is a store in a map. It lives as long as its value. It is for requests whose caller keeps all state (a
// stateless chat). It passes the same tests as the other stores and is as strict.
package memory

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/watch"
)

// Store implements [store.Store] in a map.
type Store struct {
	now func() time.Time

	mu   sync.Mutex
	last time.Time // the latest version or ReadTime returned
	docs map[string]store.Doc

	watchers watch.Hub
}

var _ store.Store = (*Store)(nil)

// New returns an empty store. now is its clock; it need not advance.
func New(now func() time.Time) *Store { return &Store{now: now, docs: map[string]store.Doc{}} }

// Close does nothing.
func (s *Store) Close() error { return nil }

// read returns the time of a read, which is never before that of an earlier write.
func (s *Store) read() time.Time {
	if at := s.now().UTC().Truncate(time.Microsecond); at.After(s.last) {
		s.last = at
	}
	return s.last
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, paths ...string) ([]store.Doc, error) {
	if err := store.CheckGet(paths); err != nil || len(paths) == 0 {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, store.Interrupted("get", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.read()
	docs := make([]store.Doc, len(paths))
	for i, p := range paths {
		docs[i] = clone(s.docs[p])
		docs[i].Path, docs[i].ReadTime = p, at
	}
	return docs, nil
}

// Commit implements [store.Store].
func (s *Store) Commit(ctx context.Context, writes ...store.Write) ([]time.Time, error) {
	if err := store.CheckCommit(writes); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, store.Interrupted("commit", err)
	}
	versions, err := s.apply(writes)
	if err == nil {
		s.watchers.Committed(writes, versions)
	}
	return versions, err
}

// Watch implements [store.Store].
func (s *Store) Watch(ctx context.Context, path string) iter.Seq2[store.Doc, error] {
	return s.watchers.Watch(ctx, path, s.Get)
}

func (s *Store) apply(writes []store.Write) ([]time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, w := range writes {
		if !s.holds(w) {
			return nil, fmt.Errorf("write %d: %w", i+1, store.ErrConflict)
		}
	}
	s.last = s.read().Add(time.Microsecond)
	versions := make([]time.Time, len(writes))
	for i, w := range writes {
		switch w.Op {
		case store.OpDelete:
			delete(s.docs, w.Doc.Path)
			continue
		case store.OpCheck:
			versions[i] = w.Doc.Version
			continue
		}
		d, err := kept(w.Doc)
		if err != nil {
			return nil, err
		}
		d.Version, versions[i] = s.last, s.last
		s.docs[d.Path] = d
	}
	return versions, nil
}

// holds reports whether the write's precondition holds.
func (s *Store) holds(w store.Write) bool {
	current := s.docs[w.Doc.Path]
	switch {
	case w.Op == store.OpCreate:
		return !current.Exists()
	case w.Op == store.OpDelete && w.Doc.Version.IsZero():
		return true
	}
	return current.Exists() && current.Version.Equal(w.Doc.Version)
}

// kept returns the document in its stored form. CheckCommit has checked its fields.
func kept(d store.Doc) (store.Doc, error) {
	out := store.Doc{Path: d.Path, Data: append([]byte{}, d.Data...), Fields: make(map[string]any, len(d.Fields))}
	for name, v := range d.Fields {
		canonical, err := store.Canonical(v)
		if err != nil {
			return out, err
		}
		out.Fields[name] = canonical
	}
	return out, nil
}

func clone(d store.Doc) store.Doc {
	d.Data, d.Fields = slices.Clone(d.Data), maps.Clone(d.Fields)
	return d
}

// Query implements [store.Store]. It reads every document.
func (s *Store) Query(ctx context.Context, q store.Query) ([]store.Doc, error) {
	if _, err := store.CheckQuery(q); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, store.Interrupted("query", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.read()
	var found []store.Doc
	for _, d := range s.docs {
		if answers(d, q) {
			if q.Select != nil {
				d.Data = nil
			}
			d = clone(d)
			d.ReadTime = at
			found = append(found, d)
		}
	}
	slices.SortFunc(found, func(a, b store.Doc) int {
		_, id := store.SplitPath(b.Path)
		return order(q, a, b.Fields[q.OrderBy], id)
	})
	found = found[:min(len(found), q.Limit)]
	for i := range found {
		found[i].Fields = q.Selected(found[i].Fields)
	}
	return found, nil
}

// answers reports whether the document matches the query.
func answers(d store.Doc, q store.Query) bool {
	collection, _ := store.SplitPath(d.Path)
	if collection != q.Collection || q.OrderBy != store.ByName && d.Fields[q.OrderBy] == nil {
		return false
	}
	if q.After != nil && !follows(d, q) {
		return false
	}
	return !slices.ContainsFunc(q.Where, func(f store.Filter) bool { return !passes(d.Fields[f.Field], f) })
}

// follows reports whether the document comes after the query's cursor.
func follows(d store.Doc, q store.Query) bool {
	if q.OrderBy == store.ByName {
		return order(q, d, nil, q.After.ID) > 0
	}
	value, err := store.Canonical(q.After.Value)
	return err == nil && order(q, d, value, q.After.ID) > 0
}

// passes reports whether the value has the filter's type and matches the filter.
func passes(v any, f store.Filter) bool {
	want, err := store.Canonical(f.Value)
	if err != nil || reflect.TypeOf(v) != reflect.TypeOf(want) {
		return false
	}
	c := compare(v, want)
	return f.Op == "==" && c == 0 || f.Op == "<=" && c <= 0 || f.Op == ">=" && c >= 0
}

// order compares the document with a position in the query's order.
func order(q store.Query, d store.Doc, value any, id string) int {
	_, own := store.SplitPath(d.Path)
	c := strings.Compare(own, id)
	if q.OrderBy != store.ByName {
		c = cmp.Or(compare(d.Fields[q.OrderBy], value), c)
	}
	if q.Desc {
		return -c
	}
	return c
}

// compare compares values in Firestore's order: booleans, numbers, times, strings.
func compare(a, b any) int {
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c
	}
	switch a := a.(type) {
	case bool:
		return cmp.Compare(number(a), number(b.(bool)))
	case int64:
		return cmp.Compare(a, b.(int64))
	case time.Time:
		return a.Compare(b.(time.Time))
	default:
		return strings.Compare(a.(string), b.(string))
	}
}

func rank(v any) int {
	switch v.(type) {
	case bool:
		return 0
	case int64:
		return 1
	case time.Time:
		return 2
	}
	return 3
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
