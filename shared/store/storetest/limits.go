package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

func testCommitsRefused(t *testing.T, st store.Store) {
	v := commit(t, st, store.Create("runs/a", nil, nil))[0]
	for name, writes := range map[string][]store.Write{
		"nothing":                   {},
		"one path twice":            {store.Create("runs/b", nil, nil), store.Delete("runs/b", time.Time{})},
		"update without a version":  {store.Update("runs/a", time.Time{}, nil, nil)},
		"version in nanoseconds":    {store.Update("runs/a", v.Add(time.Nanosecond), nil, nil)},
		"version in the year 10000": {store.Delete("runs/a", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))},
		"no operation":              {{Doc: store.Doc{Path: "runs/b"}}},
		"data that is not UTF-8":    {store.Create("runs/b", nil, []byte{'"', 0xff, '"'})},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, st, store.ErrInvalid, writes...)
			if d := get(t, st, "runs/a"); get(t, st, "runs/b").Exists() || !d.Version.Equal(v) {
				t.Fatal("a refused commit changed something")
			}
		})
	}
}

// filler returns data that makes the document exactly size bytes long.
func filler(path string, size int) []byte {
	return []byte(strings.Repeat("x", size-store.Doc{Path: path}.Size()))
}

func testDocSize(t *testing.T, st store.Store) {
	largest := filler("runs/a", store.MaxDoc)
	v := commit(t, st, store.Create("runs/a", nil, largest))[0]
	refused(t, st, store.ErrTooLarge, store.Create("runs/b", nil, append(largest, 'x')))
	refused(t, st, store.ErrTooLarge, store.Update("runs/a", v, fields{"n": int64(1)}, largest))
	if d := get(t, st, "runs/a"); len(d.Data) != len(largest) || !d.Version.Equal(v) {
		t.Fatalf("the largest document came back with %d bytes of %d", len(d.Data), len(largest))
	}
}

func testCommitSize(t *testing.T, st store.Store) {
	var writes []store.Write
	rest := store.MaxCommit
	for i := 0; rest > 0; i++ {
		path := fmt.Sprintf("runs/%d", i)
		size := min(rest, store.MaxDoc-1000)
		writes = append(writes, store.Create(path, nil, filler(path, size)))
		rest -= size
	}
	refused(t, st, store.ErrTooLarge, append(writes, store.Delete("runs/more", time.Time{}))...)
	if get(t, st, "runs/0").Exists() {
		t.Fatal("a commit that is too large was partly applied")
	}
	commit(t, st, writes...)
}

func testCounts(t *testing.T, st store.Store) {
	writes := make([]store.Write, store.MaxWrites+1)
	names := make([]string, store.MaxReads+1)
	for i := range writes {
		writes[i] = store.Create(fmt.Sprintf("runs/%d", i), nil, nil)
	}
	for i := range names {
		names[i] = fmt.Sprintf("runs/%d", i)
	}
	refused(t, st, store.ErrTooLarge, writes...)
	commit(t, st, writes[:store.MaxWrites]...)
	if _, err := st.Get(t.Context(), names...); !errors.Is(err, store.ErrTooLarge) {
		t.Fatalf("get of %d paths gave %v", len(names), err)
	}
	docs, err := st.Get(t.Context(), names[:store.MaxReads]...)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		if !d.Exists() {
			t.Fatalf("%s is missing", d.Path)
		}
	}
}

func testBadPaths(t *testing.T, st store.Store) {
	for name, path := range map[string]string{
		"empty": "", "one segment": "runs", "three segments": "runs/a/events", "only a slash": "/",
		"slash first": "/runs/a",
		"slash last":  "runs/a/", "slash last, even": "runs/a/events/", "empty segment": "runs//a",
		"empty collection": "/a", "empty id": "runs/",
		"dot": "runs/.", "dots": "runs/..", "climbing": "runs/a/../b", "dots as collection": "../a",
		"backslash": `runs\a`, "percent slash": "runs%2Fa",
		"NUL": "runs/a\x00b", "reserved": "runs/__x__", "reserved, shortest": "runs/____",
		"reserved collection": "__runs__/a",
		"not UTF-8":           "runs/\xff", "half a rune": "runs/\xe2\x82",
		"id too long": "runs/" + strings.Repeat("x", 1501),
		"too deep":    strings.Repeat("a/b/", 100) + "a/b",
		"too long": strings.Repeat(strings.Repeat("x", 1000)+"/", 7) +
			"x",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := st.Get(t.Context(), "runs/good", path); !errors.Is(err, store.ErrBadPath) {
				t.Errorf("get gave %v", err)
			}
			for _, w := range []store.Write{store.Create(path, nil, nil), store.Update(path, epoch, nil, nil),
				store.Delete(path, time.Time{}), store.Delete(path, epoch)} {
				refused(t, st, store.ErrBadPath, store.Create("runs/good", nil, nil), w)
			}
			if get(t, st, "runs/good").Exists() {
				t.Fatal("a refused commit was partly applied")
			}
		})
	}
}

// Unusual names are valid and distinct.
func testGoodPaths(t *testing.T, st store.Store) {
	ids := []string{
		"a", "A", "ä", "a\u0308", "...", ".a", "__", "___", "__a", "a__", "_", " ", "a b", "%2F", "%2e%2e", "a%b",
		"a'b", `a"b`, "a`b", "a\\b", "a;b",
		"*", "?", "#", "a:b", "a@example.com", "😀", "\u202ea", "\u2215", "\uff0f", "a\nb", "a\tb", "\x7f", "0", "00",
		"-1", strings.Repeat("x", 1500),
	}
	var writes []store.Write
	var names []string
	for _, id := range ids {
		for _, path := range []string{"runs/" + id, "runs/" + id + "/events/" + id[:1] + "1"} {
			if store.ValidPath(path) == nil {
				names = append(names, path)
				writes = append(writes, store.Create(path, nil, []byte(path)))
			}
		}
	}
	commit(t, st, writes...)
	docs, err := st.Get(t.Context(), names...)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range docs {
		if d.Path != names[i] || string(d.Data) != names[i] {
			t.Errorf("%q came back as %q with %q", names[i], d.Path, d.Data)
		}
	}
}
