package audit_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/gowebpki/jcs"
	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/store/audit"
)

// mutations change one thing about the entry with index i, and return the numbers of the entries that Verify must name.
var mutations = map[string]func(t *rapid.T, e []audit.Entry, i int) ([]audit.Entry, []int64){
	"a field": func(t *rapid.T, e []audit.Entry, i int) ([]audit.Entry, []int64) {
		stored := func(n int) bool { return reflect.TypeFor[audit.Entry]().Field(n).Tag.Get("json") != "-" }
		f := reflect.ValueOf(&e[i]).Elem().Field(rapid.IntRange(0, reflect.TypeFor[audit.Entry]().NumField()-1).
			Filter(stored).Draw(t, "field"))
		switch old := f.Interface().(type) {
		case int64:
			f.SetInt(rapid.Int64Range(-3, 20).Filter(func(n int64) bool { return n != old }).Draw(t, "number"))
		case string:
			f.SetString(rapid.String().Filter(func(s string) bool { return s != old }).Draw(t, "text"))
		case time.Time:
			f.Set(reflect.ValueOf(old.Add(time.Duration(rapid.Int64Range(1, 1<<40).Draw(t, "later")))))
		case map[string]string:
			changed := maps.Clone(old)
			if changed == nil {
				changed = map[string]string{}
			}
			changed[rapid.StringMatching(`[a-z]{1,9}`).Filter(func(s string) bool { return old[s] == "" }).Draw(t,
				"name")] = "1"
			f.Set(reflect.ValueOf(changed))
		default:
			t.Fatalf("no mutation for a field of type %s", f.Type())
		}
		return e, []int64{int64(i + 1)}
	},
	"removed": func(_ *rapid.T, e []audit.Entry, i int) ([]audit.Entry, []int64) {
		return slices.Delete(e, i, i+1), []int64{int64(i + 1)}
	},
	"copied": func(t *rapid.T, e []audit.Entry, i int) ([]audit.Entry, []int64) {
		return slices.Insert(e, rapid.IntRange(0, len(e)).Draw(t, "place"), e[i]), []int64{int64(i + 1)}
	},
	"forged behind it": func(_ *rapid.T, e []audit.Entry, i int) ([]audit.Entry, []int64) {
		f, h := audit.Seal(audit.Head{Seq: e[i].Seq, Hash: e[i].Hash}, audit.Entry{RunID: "run-1", Kind: audit.Denied})
		return slices.Insert(e, i+1, f), []int64{h.Seq}
	},
	"sealed anew": func(_ *rapid.T, e []audit.Entry, i int) ([]audit.Entry, []int64) {
		f := e[i]
		f.Decision = "reject"
		e[i], _ = audit.Seal(audit.Head{Seq: f.Seq - 1, Hash: f.PrevHash}, f)
		return e, []int64{int64(i + 1)}
	},
	"swapped": func(t *rapid.T, e []audit.Entry, i int) ([]audit.Entry, []int64) {
		if len(e) == 1 {
			return nil, []int64{1}
		}
		j := (i + rapid.IntRange(1, len(e)-1).Draw(t, "by")) % len(e)
		e[i], e[j] = e[j], e[i]
		return e, []int64{int64(i + 1), int64(j + 1)}
	},
	"cut off": func(_ *rapid.T, e []audit.Entry, i int) ([]audit.Entry, []int64) {
		return e[:i], []int64{int64(i + 1), int64(len(e))}
	},
}

func TestVerifyMutations(t *testing.T) {
	for name, mutate := range mutations {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				entries, head := chain("run-1", rapid.IntRange(1, 9).Draw(t, "entries"))
				if found := audit.Verify(entries, head); found != nil {
					t.Fatalf("nothing was done, and %v is found", found)
				}
				entries, want := mutate(t, entries, rapid.IntRange(0, len(entries)-1).Draw(t, "which"))
				found := audit.Verify(entries, head)
				for _, seq := range want {
					named := func(p audit.Finding) bool { return p.First <= seq && seq <= p.Last }
					if !slices.ContainsFunc(found, named) {
						t.Fatalf("entry %d is not named in %v", seq, found)
					}
				}
				for _, p := range found {
					if len(want) == 1 && !(p.First == want[0] && p.Last == want[0]) {
						t.Fatalf("%v is named for entry %d", p, want[0])
					}
				}
			})
		})
	}
}

// Verify terminates and finds a fault for any input that is not a chain.
func TestVerifyOfAnyInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sealed, end := chain("run-1", rapid.IntRange(0, 5).Draw(t, "entries"))
		entries, head := slices.Clone(sealed), end
		for i := range entries {
			entries[i].Seq = rapid.Int64().Draw(t, "seq")
			entries[i].PrevHash = rapid.SampledFrom([]string{"", head.Hash, entries[0].Hash}).Draw(t, "prev")
		}
		head.Seq = rapid.Int64().Draw(t, "head")
		same := reflect.DeepEqual(slices.Concat(entries), slices.Concat(sealed)) &&
			(head == end || len(entries) == 0 && head.Seq <= 0)
		if found := audit.Verify(entries, head); (found == nil) != same {
			t.Fatalf("found %v", found)
		}
	})
}

// TestHashesOfEarlierReleases compares the hash of any entry with the result of another implementation of RFC 8785,
// which sealed the entries of earlier releases.
func TestHashesOfEarlierReleases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e audit.Entry
		for i := range reflect.TypeFor[audit.Entry]().NumField() {
			switch f := reflect.ValueOf(&e).Elem().Field(i); f.Kind() {
			case reflect.String:
				f.SetString(rapid.String().Draw(t, "text"))
			case reflect.Int64:
				f.SetInt(rapid.Int64Range(0, 1<<50).Draw(t, "number"))
			}
		}
		sealed, _ := audit.Seal(audit.Head{Seq: rapid.Int64Range(0, 9999).Draw(t, "seq"), Hash: e.PrevHash}, e)
		bare := sealed
		bare.Hash = ""
		text, err := json.Marshal(bare)
		if err == nil {
			text, err = jcs.Transform(text)
		}
		if sum := sha256.Sum256(text); err != nil || sealed.Hash != hex.EncodeToString(sum[:]) {
			t.Fatalf("%v: %s has the hash %s", err, text, sealed.Hash)
		}
	})
}
