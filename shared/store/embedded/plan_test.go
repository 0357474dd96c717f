package embedded

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// The cost of a statement must not grow with a collection: each statement seeks in an index, and none sorts.
func TestPlans(t *testing.T) {
	st, err := Open(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	type statement struct {
		text, index string
		args, equal int
		order       string
	}
	const (
		byPath = "sqlite_autoindex_documents_1 (path=?)"
		byRow  = "INTEGER PRIMARY KEY (rowid=?)"
	)
	all := map[string]statement{
		"get":    {getSQL, byPath, 1, 0, ""},
		"lookUp": {lookUpSQL(2), byPath, 2, 0, ""},
		"update": {updateSQL(update{true, 3}), byRow, 6, 0, ""},
		"renew":  {updateSQL(update{}), byRow, 3, 0, ""},
		"remove": {removeSQL, byRow, 1, 0, ""},
	}
	for _, x := range store.Indexes {
		if x.OrderBy == store.ByName {
			all["by name "+x.Collection] =
				statement{querySQL(x), "sqlite_autoindex_documents_1 (path>? AND path<?)", 3, 0, ""}
			continue
		}
		all[statementName(x)] = statement{querySQL(x), indexName(served(x)) + " (", len(x.Equal) + 6,
			len(served(x).Equal), column(x.OrderBy)}
	}
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(s.text, "LIMIT ?") && !strings.Contains(s.text, "LIMIT ? + 0") {
				t.Errorf("SQLite parses the statement again for each limit:\n%s", s.text)
			}
			rows, err := st.reader.Query("EXPLAIN QUERY PLAN "+s.text, make([]any, s.args)...)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			var plan []string
			for rows.Next() {
				var id, parent, unused int
				var step string
				if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
					t.Fatal(err)
				}
				plan = append(plan, step)
			}
			if err := rows.Err(); err != nil {
				t.Fatal(err)
			}
			text := strings.Join(plan, "\n")
			if strings.Contains(text, "SCAN d") || strings.Contains(text, "TEMP B-TREE") ||
				!strings.Contains(text, s.index) || !strings.Contains(text, "SEARCH d") {
				t.Fatalf("the plan is not a seek in %s:\n%s", s.index, text)
			}
			if strings.HasPrefix(name, "query_") &&
				(!strings.Contains(text, s.order+">?") || !strings.Contains(text, s.order+"<?") ||
					strings.Count(text, "=?") != s.equal) {
				t.Fatalf("the plan does not seek by all equalities and both bounds:\n%s", text)
			}
		})
	}
}

// TestColumns checks that a file of this schema version has exactly these columns, so that a further column requires a
// new version.
func TestColumns(t *testing.T) {
	of := map[int]string{2: "at createdAt deleting due dueShard requestedAt runId seq status threadId uid updatedAt"}
	if got := strings.Join(columns, " "); got != of[schemaVersion] || len(columns) > 32 {
		t.Errorf("version %d has the columns %s", schemaVersion, got)
	}
}

// TestIndexesOfEarlierReleases checks that opening a file drops indexes for queries that no longer exist. They would be
// written with every commit and never read.
func TestIndexesOfEarlierReleases(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		st, err := Open(dir, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		var old int
		if err := st.writer.QueryRow(`SELECT count(*) FROM sqlite_schema WHERE name = 'query_runs_due'`).Scan(
			&old); err != nil ||
			old != 0 {
			t.Fatalf("%v: %d indexes of an earlier release are kept", err, old)
		}
		if _, err := st.writer.Exec(indexSQL(store.Index{Collection: "runs", OrderBy: "due"})); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A commit is on the disk before it is acknowledged, so that it survives a power failure.
func TestDurability(t *testing.T) {
	st, err := Open(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2"} {
		var got string
		if err := st.writer.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %s, %v, want %s", pragma, got, err, want)
		}
	}
}

// The write-ahead log is copied into the file while commits continue, and then starts from its beginning, so it does
// not grow.
func TestWriteAheadLogSize(t *testing.T) {
	st, err := Open(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	data := make([]byte, 40<<10)
	for i := range data {
		data[i] = 'x'
	}
	longest, again, last := 0, 0, 0
	for n := range 1000 {
		if _, err := st.Commit(t.Context(), store.Create(fmt.Sprintf("runs/%d", n), nil, data)); err != nil {
			t.Fatal(err)
		}
		var busy, pages, copied int
		if err := st.reader.QueryRow(logSQL).Scan(&busy, &pages, &copied); err != nil {
			t.Fatal(err)
		}
		if pages < last {
			again++
		}
		longest, last = max(longest, pages), pages
	}
	if longest >= longestLog/2 || again == 0 {
		t.Errorf("the log had %d pages, and began anew %d times", longest, again)
	}
}

// FuzzKey checks that the order of keys is the order of values, and that value is the inverse of key.
func FuzzKey(f *testing.F) {
	f.Add(int64(0), int64(-1), "", "a", int64(0), int64(1))
	f.Add(int64(1<<62), int64(-1<<63), "a\x00", "a", int64(-62135596800000000), int64(253402300799999999))
	f.Fuzz(func(t *testing.T, n1, n2 int64, s1, s2 string, t1, t2 int64) {
		const year1, year10000 = -62135596800000000, 253402300800000000
		if t1 < year1 || t1 >= year10000 || t2 < year1 || t2 >= year10000 {
			t.Skip("a time outside the years 1 to 9999, which no document has")
		}
		sign := func(less, more bool) int {
			switch {
			case less:
				return -1
			case more:
				return 1
			}
			return 0
		}
		at1, at2 := time.UnixMicro(t1).UTC(), time.UnixMicro(t2).UTC()
		for _, c := range []struct {
			a, b any
			want int
		}{{n1, n2, sign(n1 < n2, n1 > n2)}, {s1, s2, strings.Compare(s1, s2)}, {at1, at2, at1.Compare(at2)},
			{n1, at1, -1}, {at1, s1, -1}, {true, n1, -1}} {
			a, errA := key(c.a)
			b, errB := key(c.b)
			if errA != nil || errB != nil {
				continue // a string that no backend stores
			}
			if got := strings.Compare(a, b); got != c.want {
				t.Fatalf("%v and %v compare as %d, their keys as %d", c.a, c.b, c.want, got)
			}
			text, err := encoded(map[string]any{"a": c.a, "b": c.b})
			if err != nil {
				t.Fatal(err)
			}
			if back, err := values(text); err != nil || back["a"] != c.a || back["b"] != c.b || len(back) != 2 {
				t.Fatalf("%v and %v came back as %v from %s, %v", c.a, c.b, back, text, err)
			}
			for k, v := range map[string]any{a: c.a, b: c.b} {
				back, err := value(k)
				if err != nil || back != v {
					t.Fatalf("%v came back as %v, %v", v, back, err)
				}
			}
		}
	})
}

func encoded(values map[string]any) (string, error) {
	fields, err := fieldsOf(values)
	if err != nil {
		return "", err
	}
	return encode(fields)
}
