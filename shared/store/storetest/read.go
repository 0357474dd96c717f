package storetest

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

func testGet(t *testing.T, st store.Store) {
	commit(t, st, store.Create("runs/a", nil, []byte(`1`)), store.Create("runs/b", nil, []byte(`2`)),
		store.Create("runs/a/events/1", nil, []byte(`3`)))
	want := []string{"runs/b", "runs/none", "runs/a/events/1", "runs/a", "runs/b", "none/none"}
	docs, err := st.Get(t.Context(), want...)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(paths(docs), want) {
		t.Fatalf("got %v, want %v", paths(docs), want)
	}
	for i, data := range []string{"2", "", "3", "1", "2", ""} {
		d := docs[i]
		if string(d.Data) != data || d.Exists() != (data != "") || d.ReadTime.IsZero() ||
			d.ReadTime.Location() != time.UTC {
			t.Errorf("document %d: %+v", i, d)
		}
		if !d.Exists() && d.Fields != nil {
			t.Errorf("document %d does not exist and has fields", i)
		}
	}
	if docs, err := st.Get(t.Context()); len(docs) != 0 || err != nil {
		t.Fatalf("get of nothing: %v, %v", docs, err)
	}
}

// testTimes checks that the store has one clock: a read after a commit has no earlier time, and a commit after a read
// has a later one.
func testTimes(t *testing.T, st store.Store) {
	var last, version time.Time
	for i := range 20 {
		write := store.Update("runs/a", version, nil, []byte{byte('0' + i%10)})
		if i == 0 {
			write = store.Create("runs/a", nil, nil)
		}
		v := commit(t, st, write, store.Create("runs/a/events/"+strings.Repeat("x", i+1), nil, nil))
		if !v[0].After(last) || !v[0].Equal(v[1]) {
			t.Fatalf("versions %v of one commit after %v", v, last)
		}
		version = v[0]
		for _, path := range []string{"runs/a", "runs/none"} {
			d := get(t, st, path)
			if d.ReadTime.Before(version) || d.ReadTime.Before(last) {
				t.Fatalf("read of %s at %v, after a commit at %v", path, d.ReadTime, version)
			}
			last = d.ReadTime
		}
	}
	v := commit(t, st, store.Create("queue/a", fields{"due": epoch}, nil))[0]
	if d := query(t, st, store.Query{Collection: "queue", OrderBy: "due", Limit: 1})[0]; d.ReadTime.Before(v) ||
		!d.Version.Equal(v) {
		t.Fatalf("query read at %v version %v, committed at %v", d.ReadTime, d.Version, v)
	}
}

func testBytes(t *testing.T, st store.Store) {
	for name, data := range map[string]string{
		"odd spacing":    "{ \"b\" :\t1,\r\n\n\"a\":[ ] , \"a\" : 1.0e+02 }  \n",
		"unicode":        `{"s":"Grüße, 日本語, 😀, é≠é, ` + "\u2028\u202e\ufeff\u00a0" + `"}`,
		"escapes":        `{"s":"\u0000\ud83d\ude00\/<>&'"}`,
		"large number":   `{"n":123456789012345678901234567890.123456789}`,
		"empty":          ``,
		"not even JSON":  `{{`,
		"raw NUL":        "\"a\x00b\"",
		"800 KiB":        `"` + strings.Repeat("0123456é", 800<<10/9) + `"`,
		"quote and dash": `'; DROP TABLE documents; --`,
	} {
		t.Run(name, func(t *testing.T) {
			path := "runs/" + strings.ReplaceAll(name, " ", "-")
			commit(t, st, store.Create(path, nil, []byte(data)))
			if d := get(t, st, path); string(d.Data) != data {
				t.Fatalf("%d bytes came back as %d others", len(data), len(d.Data))
			}
		})
	}
}

func testFields(t *testing.T, st store.Store) {
	in := fields{
		"empty": "", "text": "Grüße 😀 \x00 \\ \" ' %", "_long9": strings.Repeat("x", 1500),
		"yes": true, "no": false, "zero": int64(0), "most": int64(math.MaxInt64), "least": int64(math.MinInt64),
		"exact": epoch.Add(123456 * time.Microsecond), "nanos": epoch.Add(999999999),
		"before1970": time.Date(1969, 12, 31, 23, 59, 59, 999999999, time.UTC),
		"first":      time.Time{}, "final": time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC),
		"elsewhere": epoch.In(time.FixedZone("x", 3600)),
	}
	want := fields{}
	for k, v := range in {
		if at, ok := v.(time.Time); ok {
			v = at.UTC().Truncate(time.Microsecond)
		}
		want[k] = v
	}
	commit(t, st, store.Create("runs/a", in, []byte(`{}`)))
	if got := get(t, st, "runs/a").Fields; !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %v\nwant %v", got, want)
	}
	if in["nanos"] != epoch.Add(999999999) {
		t.Fatal("commit changed its caller's map")
	}
}

func testFieldsRefused(t *testing.T, st store.Store) {
	for name, f := range map[string]fields{
		"int": {"n": 1}, "int32": {"n": int32(1)}, "uint64": {"n": uint64(1)}, "float": {"n": 1.0}, "nil": {"n": nil},
		"bytes": {"n": []byte("x")}, "slice": {"n": []string{"x"}}, "map": {"n": map[string]any{}},
		"pointer":  {"n": new(string)},
		"duration": {"n": time.Second}, "named string": {"n": store.ErrConflict},
		"year 10000":         {"n": time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
		"text over an index": {"n": strings.Repeat("x", 1501)}, "text not UTF-8": {"n": "\xff"},
		"no name": {"": "x"}, "data": {store.DataField: "x"}, "previous": {store.PreviousField: "x"},
		"reserved": {"__x__": "x"},
		"dot":      {"a.b": "x"}, "digit first": {"1a": "x"}, "quote": {"a'b": "x"}, "letter beyond ASCII": {"é": "x"},
		"name too long": {strings.Repeat("n", 101): "x"},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, st, store.ErrInvalid, store.Create("runs/a", f, nil))
			if get(t, st, "runs/a").Exists() {
				t.Fatal("a refused document exists")
			}
		})
	}
}
