package embedded_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/embedded"
)

// The content of a file by a release with schema 1: its tables, two of its indexes, and its documents.
const schema1 = `
PRAGMA journal_mode = WAL;
CREATE TABLE documents (
	path       TEXT NOT NULL UNIQUE,
	collection TEXT NOT NULL,
	id         TEXT NOT NULL,
	version    INTEGER NOT NULL,
	fields     TEXT NOT NULL,
	data       BLOB NOT NULL
) STRICT;
CREATE TABLE clock (
	id   INTEGER PRIMARY KEY CHECK (id = 1),
	last INTEGER NOT NULL
) STRICT;
INSERT INTO clock VALUES (1, 1772323200000009);
CREATE INDEX query_runs_dueShard_due ON documents (fields->>'$.dueShard', fields->>'$.due', id)
	WHERE collection = 'runs' AND fields->>'$.due' IS NOT NULL;
CREATE INDEX query_threads_uid_updatedAt ON documents (fields->>'$.uid', fields->>'$.updatedAt', id)
	WHERE collection = 'threads' AND fields->>'$.updatedAt' IS NOT NULL;
INSERT INTO documents VALUES
	('runs/a', 'runs', 'a', 1772323200000001,
		'{"aside":"btrue","createdAt":"t2026-03-01T00:00:00.000001Z","due":"t2026-03-01T00:01:15.000000Z",' ||
		'"dueShard":"n8000000000000007","threadId":"wt","tries":"n8000000000000003","uid":"w\"q\" \\ é\u003c"}',
		CAST('{"a": "é"}' AS BLOB)),
	('runs/b', 'runs', 'b', 1772323200000002, '{"createdAt":"t2026-03-01T00:00:00.000002Z","uid":"wana"}', x''),
	('runs/a/events/000001', 'runs/a/events', '000001', 1772323200000003, '{}', CAST('[]' AS BLOB)),
	('threads/t', 'threads', 't', 1772323200000004,
		'{"dueShard":"n8000000000000001","uid":"wana","updatedAt":"t2026-03-01T00:00:00.000004Z"}', CAST('{}' AS BLOB)),
	('threads/u', 'threads', 'u', 1772323200000005,
		'{"dueShard":"n8000000000000001","uid":"wana","updatedAt":"t2026-03-01T00:00:00.000005Z"}', CAST('{}' AS BLOB));
PRAGMA user_version = 1;
`

// TestEarlierSchema opens a file that the previous release wrote. Its documents exist with their versions, every query
// finds them, and they can be changed. The clock continues from its stored value.
func TestEarlierSchema(t *testing.T) {
	dir := t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(dir, "countersign.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(schema1); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	at := func(micros int) time.Time { return time.Date(2026, 3, 1, 0, 0, 0, micros*1000, time.UTC) }
	a := store.Doc{Path: "runs/a", Version: at(1), Data: []byte(`{"a": "é"}`), Fields: map[string]any{"aside": true,
		"createdAt": at(1), "due": at(75e6), "dueShard": int64(7), "threadId": "t", "tries": int64(3),
		"uid": `"q" \ é<`}}
	for range 2 { // it is rewritten only once
		st, err := embedded.Open(dir, func() time.Time { return at(0) })
		if err != nil {
			t.Fatal(err)
		}
		docs, err := st.Get(t.Context(), "runs/a", "runs/b", "runs/a/events/000001", "runs/none")
		if err != nil || docs[0].ReadTime.Before(at(9)) {
			t.Fatalf("%v, read at %v", err, docs[0].ReadTime)
		}
		docs[0].ReadTime = time.Time{}
		if !reflect.DeepEqual(docs[0], a) || !docs[1].Version.Equal(at(2)) || len(docs[1].Data) != 0 ||
			string(docs[2].Data) != "[]" || docs[3].Exists() {
			t.Errorf("%+v", docs)
		}
		for _, want := range []struct {
			q     store.Query
			paths []string
		}{
			{store.Query{Collection: "runs", OrderBy: "due", Limit: 9, Where: equal("dueShard", int64(7))},
				[]string{"runs/a"}},
			{store.Query{Collection: "runs", OrderBy: store.ByName, Limit: 9}, []string{"runs/a", "runs/b"}},
			{store.Query{Collection: "runs", OrderBy: "createdAt", Limit: 9, Where: equal("uid", "ana")},
				[]string{"runs/b"}},
			{store.Query{Collection: "threads", OrderBy: "updatedAt", Desc: true, Limit: 9, Where: equal("uid", "ana")},
				[]string{"threads/u", "threads/t"}},
			{store.Query{Collection: "threads", OrderBy: "updatedAt", Limit: 9, Where: equal("dueShard", int64(1))},
				[]string{"threads/t", "threads/u"}},
		} {
			found, err := st.Query(t.Context(), want.q)
			var paths []string
			for _, d := range found {
				paths = append(paths, d.Path)
			}
			if err != nil || !slices.Equal(paths, want.paths) {
				t.Errorf("%s by %s: %v, %v, want %v", want.q.Collection, want.q.OrderBy, paths, err, want.paths)
			}
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	st := file(t, dir, func() time.Time { return at(0) })
	if _, err := st.Commit(t.Context(), store.Update("runs/a", at(2), nil, nil)); !errors.Is(err, store.ErrConflict) {
		t.Errorf("an update of another version gave %v", err)
	}
	a.Fields["due"], a.Fields["dueShard"] = at(1), int64(8)
	delete(a.Fields, "threadId")
	v, err := st.Commit(t.Context(), store.Update("runs/a", at(1), a.Fields, a.Data), store.Delete("threads/u", at(5)))
	if err != nil || !v[0].After(at(9)) {
		t.Fatalf("%v at %v", err, v)
	}
	for shard, want := range map[int64]int{7: 0, 8: 1} {
		found, err := st.Query(t.Context(), store.Query{Collection: "runs", OrderBy: "due", Limit: 9,
			Where: equal("dueShard", shard)})
		if err != nil || len(found) != want {
			t.Errorf("shard %d has %v, %v", shard, found, err)
		}
	}
}

func equal(field string, v any) []store.Filter {
	return []store.Filter{{Field: field, Op: "==", Value: v}}
}
