package storetest

import (
	"reflect"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

func testCreate(t *testing.T, st store.Store) {
	v := commit(t, st, store.Create("runs/a", fields{"uid": "u"}, []byte(`{"n":1}`)))
	if v[0].IsZero() || v[0].Location() != time.UTC || !v[0].Equal(v[0].Truncate(time.Microsecond)) {
		t.Fatalf("version %v is not a UTC time in microseconds", v[0])
	}
	refused(t, st, store.ErrConflict, store.Create("runs/a", nil, []byte(`{"n":2}`)))
	d := get(t, st, "runs/a")
	if !d.Exists() || string(d.Data) != `{"n":1}` || !d.Version.Equal(v[0]) || d.Fields["uid"] != "u" {
		t.Fatalf("after a second create: %+v", d)
	}
}

func testUpdate(t *testing.T, st store.Store) {
	refused(t, st, store.ErrConflict, store.Update("runs/a", epoch, nil, []byte(`1`)))
	v1 := commit(t, st, store.Create("runs/a", nil, []byte(`1`)))[0]
	v2 := commit(t, st, store.Update("runs/a", v1, nil, []byte(`2`)))[0]
	if !v2.After(v1) {
		t.Fatalf("version %v is not after %v", v2, v1)
	}
	for name, stale := range map[string]time.Time{
		"the version before": v1, "a little later": v2.Add(time.Microsecond),
		"a little earlier": v2.Add(-time.Microsecond),
	} {
		t.Log(name)
		refused(t, st, store.ErrConflict, store.Update("runs/a", stale, nil, []byte(`3`)))
	}
	commit(t, st, store.Delete("runs/a", v2))
	refused(t, st, store.ErrConflict, store.Update("runs/a", v2, nil, []byte(`4`)))
	v3 := commit(t, st, store.Create("runs/a", nil, []byte(`5`)))[0]
	if d := get(t, st, "runs/a"); !v3.After(v2) || string(d.Data) != `5` || !d.Version.Equal(v3) {
		t.Fatalf("after delete and create: %+v, want version %v after %v", d, v3, v2)
	}
}

// testUpdateSame checks that an update with the same content is a write too. Otherwise two writers that "changed
// nothing" would both succeed.
func testUpdateSame(t *testing.T, st store.Store) {
	write := func(v time.Time) store.Write {
		return store.Update("runs/a", v, fields{"uid": "u"}, []byte(`{}`))
	}
	last := commit(t, st, store.Create("runs/a", fields{"uid": "u"}, []byte(`{}`)))[0]
	for range 3 {
		next := commit(t, st, write(last))[0]
		if !next.After(last) {
			t.Fatalf("version %v after an update of %v", next, last)
		}
		refused(t, st, store.ErrConflict, write(last))
		last = next
	}
}

func testUpdateReplaces(t *testing.T, st store.Store) {
	v := commit(t, st, store.Create("runs/a", fields{"uid": "u", "due": epoch}, []byte(`{}`)))[0]
	commit(t, st, store.Update("runs/a", v, fields{"seq": int64(1)}, nil))
	d := get(t, st, "runs/a")
	if !reflect.DeepEqual(d.Fields, fields{"seq": int64(1)}) || len(d.Data) != 0 {
		t.Fatalf("an update left something of what it replaced: %+v", d)
	}
}

func testDelete(t *testing.T, st store.Store) {
	if v := commit(t, st, store.Delete("runs/none", time.Time{})); !v[0].IsZero() {
		t.Fatalf("a delete has version %v", v[0])
	}
	refused(t, st, store.ErrConflict, store.Delete("runs/none", epoch))
	v := commit(t, st, store.Create("runs/a", nil, nil), store.Create("runs/a/events/1", nil, nil))
	refused(t, st, store.ErrConflict, store.Delete("runs/a", v[0].Add(-time.Microsecond)))
	commit(t, st, store.Delete("runs/a", v[0]))
	if get(t, st, "runs/a").Exists() {
		t.Fatal("a deleted document is there")
	}
	if !get(t, st, "runs/a/events/1").Exists() {
		t.Fatal("a delete took the subcollection with it")
	}
	commit(t, st, store.Delete("runs/a/events/1", time.Time{}))
	if get(t, st, "runs/a/events/1").Exists() {
		t.Fatal("an unconditional delete did nothing")
	}
}

// testCheck checks that a Check affects only its commit: neither the document nor its version changes.
func testCheck(t *testing.T, st store.Store) {
	v := commit(t, st, store.Create("users/u", fields{"uid": "u"}, []byte(`{"n":1}`)))[0]
	got := commit(t, st, store.Check("users/u", v), store.Create("runs/a", nil, nil))
	if !got[0].Equal(v) || !got[1].After(v) {
		t.Fatalf("a check of %v and a write have the versions %v", v, got)
	}
	if d := get(t, st, "users/u"); !d.Version.Equal(v) || string(d.Data) != `{"n":1}` || d.Fields["uid"] != "u" {
		t.Fatalf("a check left %+v", d)
	}
	later := commit(t, st, store.Update("users/u", v, nil, []byte(`{"n":2}`)))[0]
	refused(t, st, store.ErrConflict, store.Check("users/u", v), store.Create("runs/b", nil, nil))
	refused(t, st, store.ErrConflict, store.Create("runs/b", nil, nil), store.Check("users/u", v))
	refused(t, st, store.ErrConflict, store.Check("users/none", later), store.Create("runs/b", nil, nil))
	commit(t, st, store.Delete("users/u", later))
	refused(t, st, store.ErrConflict, store.Check("users/u", later), store.Create("runs/b", nil, nil))
	if get(t, st, "runs/b").Exists() || get(t, st, "users/u").Exists() || get(t, st, "users/none").Exists() {
		t.Fatal("a commit whose check failed has written")
	}
	refused(t, st, store.ErrInvalid, store.Check("users/u", time.Time{}))
	refused(t, st, store.ErrBadPath, store.Check("users", later))
}

// testAtomic checks that if any write of a commit fails, at any position, none of its writes is applied.
func testAtomic(t *testing.T, st store.Store) {
	v := commit(t, st, store.Create("runs/old", nil, []byte(`"old"`)), store.Create("runs/gone", nil, nil))
	good := []store.Write{
		store.Create("runs/new", nil, nil),
		store.Update("runs/old", v[0], nil, []byte(`"changed"`)),
		store.Delete("runs/gone", v[1]),
	}
	for _, c := range []struct {
		name string
		bad  store.Write
		want error
	}{
		{"create an existing document", store.Create("threads/there", nil, nil), store.ErrConflict},
		{"update a missing document", store.Update("threads/missing", v[0], nil, nil), store.ErrConflict},
		{"delete of another version", store.Delete("threads/there", v[0]), store.ErrConflict},
		{"bad path", store.Create("threads", nil, nil), store.ErrBadPath},
		{"bad field", store.Create("threads/x", fields{"n": 1}, nil), store.ErrInvalid},
		{"too large", store.Create("threads/x", nil, make([]byte, store.MaxDoc)), store.ErrTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !get(t, st, "threads/there").Exists() {
				commit(t, st, store.Create("threads/there", nil, nil))
			}
			refused(t, st, c.want, append(append([]store.Write{}, good...), c.bad)...)
			refused(t, st, c.want, append([]store.Write{c.bad}, good...)...)
			if get(t, st, "runs/new").Exists() || string(get(t, st, "runs/old").Data) != `"old"` ||
				!get(t, st, "runs/gone").Exists() {
				t.Fatal("a part of a refused commit is true")
			}
		})
	}
	commit(t, st, good...)
	if !get(t, st, "runs/new").Exists() || string(get(t, st, "runs/old").Data) != `"changed"` ||
		get(t, st, "runs/gone").Exists() {
		t.Fatal("a part of a good commit is missing")
	}
}
