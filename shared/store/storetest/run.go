// Package storetest defines the contract of [store.Store] as tests. [Run] tests a backend only through its methods, so
// that code that works with one backend works with the others.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// Run tests a backend. open returns an empty store that no other test uses, and registers its closing with t.Cleanup.
func Run(t *testing.T, open func(t testing.TB) store.Store) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, st store.Store)
	}{
		{"create", testCreate},
		{"update", testUpdate},
		{"update that changes nothing", testUpdateSame},
		{"update replaces fields", testUpdateReplaces},
		{"delete", testDelete},
		{"check", testCheck},
		{"atomic", testAtomic},
		{"get", testGet},
		{"versions and read times", testTimes},
		{"bytes", testBytes},
		{"fields", testFields},
		{"fields refused", testFieldsRefused},
		{"commits refused", testCommitsRefused},
		{"size of a document", testDocSize},
		{"size of a commit", testCommitSize},
		{"number of writes and reads", testCounts},
		{"bad paths", testBadPaths},
		{"good paths", testGoodPaths},
		{"every index", testEveryIndex},
		{"queries refused", testQueriesRefused},
		{"order of values", testOrder},
		{"ties", testTies},
		{"by name", testByName},
		{"selected fields", testSelect},
		{"ranges", testRanges},
		{"pages", testPages},
		{"missing field", testMissingField},
		{"collections apart", testCollections},
		{"query sees commits", testQueryFollows},
		{"race to update", testRaceUpdate},
		{"race to create", testRaceCreate},
		{"counter", testCounter},
		{"cancelled before", testCancelledBefore},
		{"cancelled during", testCancelledDuring},
		{"out of time", testOutOfTime},
		{"watch", testWatch},
		{"watch by several", testWatchSeveral},
		{"watch while it is written", testWatchRace},
		{"watch without reading", testWatchSlow},
		{"watch until its context ends", testWatchEnds},
		{"watch refused", testWatchRefused},
		{"serial", testSerial},
		{"model", testModel},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

type fields = map[string]any

// epoch is a time for fields; it is independent of the store's own clock.
var epoch = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

func commit(t testing.TB, st store.Store, writes ...store.Write) []time.Time {
	t.Helper()
	versions, err := st.Commit(t.Context(), writes...)
	if err != nil {
		t.Fatalf("commit: %v", err)
	}
	if len(versions) != len(writes) {
		t.Fatalf("commit of %d writes gave %d versions", len(writes), len(versions))
	}
	return versions
}

func get(t testing.TB, st store.Store, path string) store.Doc {
	t.Helper()
	docs, err := st.Get(t.Context(), path)
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	if len(docs) != 1 || docs[0].Path != path {
		t.Fatalf("get of one path gave %d documents", len(docs))
	}
	return docs[0]
}

func query(t testing.TB, st store.Store, q store.Query) []store.Doc {
	t.Helper()
	docs, err := st.Query(t.Context(), q)
	if err != nil {
		t.Fatalf("query: %v", err)
	}
	return docs
}

// refused checks that the commit fails with the error want and returns no versions.
func refused(t testing.TB, st store.Store, want error, writes ...store.Write) {
	t.Helper()
	versions, err := st.Commit(t.Context(), writes...)
	if !errors.Is(err, want) {
		t.Fatalf("commit gave %v, want %v", err, want)
	}
	if versions != nil {
		t.Fatalf("a refused commit gave versions")
	}
}

func filter(field, op string, value any) store.Filter {
	return store.Filter{Field: field, Op: op, Value: value}
}

func paths(docs []store.Doc) []string {
	out := make([]string, len(docs))
	for i, d := range docs {
		out[i] = d.Path
	}
	return out
}

// each calls f n times concurrently and waits for all calls.
func each(n int, f func(i int)) {
	done := make(chan struct{})
	start := make(chan struct{})
	for i := range n {
		go func() {
			<-start
			f(i)
			done <- struct{}{}
		}()
	}
	close(start)
	for range n {
		<-done
	}
}

func seedDocs(t testing.TB, st store.Store, collection string, all []fields) {
	t.Helper()
	writes := make([]store.Write, len(all))
	for i, f := range all {
		writes[i] = store.Create(fmt.Sprintf("%s/d%02d", collection, i), f, nil)
	}
	commit(t, st, writes...)
}

func cancelled(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
