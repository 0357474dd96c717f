package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/store"
)

// attempt is one commit of testSerial with its result.
type attempt struct {
	writes  []store.Write // the first creates a mark, which gives each commit a version
	version time.Time     // of the mark; zero after a conflict
	before  time.Time     // the latest version returned to any caller before the attempt began
}

// testSerial commits from several callers at once; some commits depend on documents that others have changed. In the
// order of their versions, each successful commit must have been possible, and the stored documents must be their
// result. Each commit that conflicted must have been impossible at some moment after its call.
func testSerial(t *testing.T, st store.Store) {
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		paths := make([]string, 4)
		for i := range paths {
			paths[i] = fmt.Sprintf("runs/%d-%d", round, i)
		}
		plans := make([][]step, rapid.IntRange(2, 8).Draw(rt, "callers"))
		for i := range plans {
			plans[i] = rapid.SliceOfN(rapid.Custom(drawStep(paths)), 1, 6).Draw(rt, "steps")
		}
		r := &serial{st: st, round: round}
		each(len(plans), func(i int) {
			for n, s := range plans[i] {
				r.commit(rt, fmt.Sprintf("%d-%d", i, n), s)
			}
		})
		r.check(rt, paths)
	})
}

// step is a planned commit. Its writes depend on the documents that it reads.
type step struct {
	paths []string
	drop  bool // delete the last of them if it exists
	blind bool // delete it in any case
	stale bool // create a document that exists, and update one that does not
}

func drawStep(paths []string) func(*rapid.T) step {
	return func(t *rapid.T) step {
		n := rapid.IntRange(0, 19).Draw(t, "kind")
		return step{rapid.SliceOfNDistinct(rapid.SampledFrom(paths), 1, 2, rapid.ID).Draw(t, "paths"), n < 3, n == 3,
			n == 4}
	}
}

type serial struct {
	st    store.Store
	round int

	mu   sync.Mutex
	last time.Time
	all  []attempt
}

func (r *serial) commit(t *rapid.T, name string, s step) {
	docs, err := r.st.Get(t.Context(), s.paths...)
	if err != nil {
		t.Errorf("get: %v", err)
		return
	}
	a := attempt{writes: []store.Write{store.Create(fmt.Sprintf("threads/%d-%s", r.round, name), nil, nil)}}
	for i, d := range docs {
		data := []byte(`"` + name + `"`)
		switch lastOne := i == len(docs)-1; {
		case lastOne && s.blind:
			a.writes = append(a.writes, store.Delete(d.Path, time.Time{}))
		case lastOne && s.drop && d.Exists():
			a.writes = append(a.writes, store.Delete(d.Path, d.Version))
		case d.Exists() != s.stale && d.Exists():
			a.writes = append(a.writes, store.Update(d.Path, d.Version, fields{"due": epoch}, data))
		case d.Exists() || !s.stale:
			a.writes = append(a.writes, store.Create(d.Path, nil, data))
		default:
			a.writes = append(a.writes, store.Update(d.Path, epoch, nil, data))
		}
	}
	a.before = r.answered(time.Time{})
	versions, err := r.st.Commit(t.Context(), a.writes...)
	switch {
	case err == nil:
		a.version = versions[0]
	case !errors.Is(err, store.ErrConflict):
		t.Errorf("commit: %v", err)
		return
	}
	r.answered(a.version)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, a)
}

// answered records a version and returns the latest one.
func (r *serial) answered(version time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if version.After(r.last) {
		r.last = version
	}
	return r.last
}

func (r *serial) check(t *rapid.T, paths []string) {
	slices.SortFunc(r.all, func(a, b attempt) int { return a.version.Compare(b.version) })
	m := &model{docs: map[string]store.Doc{}}
	var conflicts []attempt
	last := time.Time{}
	for _, a := range r.all {
		if a.version.IsZero() {
			conflicts = append(conflicts, a)
			continue
		}
		conflicts = m.excuse(conflicts, last)
		if !a.version.After(last) || !a.version.After(a.before) {
			t.Fatalf("version %v after %v, and after %v was answered", a.version, last, a.before)
		}
		last = a.version
		for _, w := range a.writes {
			if !m.holds(w) {
				t.Fatalf("a commit succeeded at %v whose write of %s is on %v, where %v was there", a.version,
					w.Doc.Path, w.Doc.Version, m.docs[w.Doc.Path].Version)
			}
		}
		for _, w := range a.writes {
			if w.Op == store.OpDelete {
				delete(m.docs, w.Doc.Path)
				continue
			}
			w.Doc.Version = a.version
			m.docs[w.Doc.Path] = w.Doc
		}
	}
	if left := m.excuse(conflicts, last); len(left) > 0 {
		t.Fatalf("%d of %d commits conflicted with nothing", len(left), len(r.all))
	}
	docs, err := r.st.Get(t.Context(), paths...)
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	for _, d := range docs {
		if want := m.docs[d.Path]; !d.Version.Equal(want.Version) || string(d.Data) != string(want.Data) {
			t.Fatalf("%s is %s of %v, want %s of %v", d.Path, d.Data, d.Version, want.Data, want.Version)
		}
	}
}

// excuse returns the conflicts that the model's state since the version from does not explain. It explains no conflict
// that began after a later version had been returned.
func (m *model) excuse(conflicts []attempt, from time.Time) []attempt {
	return slices.DeleteFunc(conflicts, func(a attempt) bool {
		return !a.before.After(from) &&
			slices.ContainsFunc(a.writes, func(w store.Write) bool { return !m.holds(w) })
	})
}
