package loop_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// pastOnEmulator is the number of past runs in the emulator's largest store in BenchmarkGrowth. The emulator writes
// about 2,000 documents a second, and a run has seven.
var pastOnEmulator = flag.Int("past", 1_000,
	"past runs on the Firestore emulator in BenchmarkGrowth; 100000 take an hour")

// everyday are the steps that are repeated for a user, with all that their past has left in the store.
var everyday = []struct {
	name  string
	ready func(p *proof) func() error
}{
	{"a plain run on a thread that is there", startsRun("", "again")},
	{"a run that stops for approval", startsRun("draft", "")},
	{"approve", decides(run.ApproveOnce)},
	{"resume", resumes("draft")},
	{"reading a run", func(p *proof) func() error {
		v := p.must("send", "")
		return func() error { _, _, err := p.loop.Get(context.Background(), p.uid, v.RunID); return err }
	}},
	{"listing what is pending", func(p *proof) func() error {
		p.rec.Store = p.loop.Store
		return func() error { _, _, err := p.rec.Pending(context.Background(), p.uid, "", 20); return err }
	}},
	{"a sweep with nothing due", func(p *proof) func() error {
		return func() error { _, err := p.loop.Sweep(context.Background()); return err }
	}},
}

// TestCostByPastRuns does every step for a user with few past runs and for one with many. The round trips, documents
// and bytes are the same.
func TestCostByPastRuns(t *testing.T) {
	realpart.Unraced(t)
	for _, step := range everyday {
		t.Run(step.name, func(t *testing.T) {
			var few, many cost
			var fewBytes, manyBytes int
			p := measured(newEnv(t))
			p.live(100) // enough to fill the record of the last hour
			few, fewBytes = p.spent(step.ready)
			p.decideAll()
			p.live(100)
			many, manyBytes = p.spent(step.ready)
			if few != many {
				t.Errorf("after 100 runs %+v, after 200 %+v", few, many)
			}
			// Numbers have more digits, and times may have fewer.
			if d := manyBytes - fewBytes; d > 100 || d < -100 {
				t.Errorf("after 100 runs %d bytes, after 200 %d", fewBytes, manyBytes)
			}
		})
	}
}

// live plays the user's runs: plain ones, and every fifth with an effect.
func (p *proof) live(n int) {
	p.t.Helper()
	for i := range n {
		if i%5 > 0 {
			p.must("", "")
			continue
		}
		p.approved("draft", run.ApproveOnce)
		if err := p.resume(); err != nil {
			p.t.Fatal(err)
		}
	}
}

// decideAll rejects every waiting approval and resumes approved runs, so that nothing is left of a step.
func (p *proof) decideAll() {
	p.t.Helper()
	if err := p.resume(); err != nil {
		p.t.Fatal(err)
	}
	aps, _, err := p.rec.Pending(context.Background(), p.uid, "", 100)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, a := range aps {
		if err := p.decide(&run.View{RunID: a.RunID}, run.Reject); err != nil {
			p.t.Fatal(err)
		}
	}
}

// spent does a step, and returns its cost and the number of bytes read and written.
func (p *proof) spent(ready func(*proof) func() error) (cost, int) {
	p.t.Helper()
	do := ready(p)
	p.take()
	if err := do(); err != nil {
		p.t.Fatal(err)
	}
	c, read, written := p.take()
	return c, read + written
}

// BenchmarkGrowth measures the same in stores that hold few and many past runs of the user, each with its thread, its
// approval and its audit: time, beside round trips and documents.
//
//	go test ./shared/engine/loop -run '^$' -bench Growth -benchtime 200x
//	go test ./shared/engine/loop -run '^$' -bench Growth/firestore -benchtime 200x -past 100000 -timeout 0
func BenchmarkGrowth(b *testing.B) {
	sizes := []int{10, 1_000, 100_000}
	b.Run("embedded", func(b *testing.B) {
		benchmarkGrowth(b, sizes, newFileEnv)
	})
	b.Run("firestore", func(b *testing.B) {
		b.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(b))
		sizes := slices.DeleteFunc(sizes, func(n int) bool { return n > *pastOnEmulator })
		benchmarkGrowth(b, sizes, newFirestoreEnv)
	})
}

// newFileEnv is an env on the embedded store in its usual form: a file, with a disk sync in each commit.
func newFileEnv(t testing.TB) *env {
	w := &env{t: t, now: began}
	st, err := embedded.Open(t.TempDir(), w.clock)
	return w.on(cleanup.Close(t, st, err), func(time.Duration) {})
}

func benchmarkGrowth(b *testing.B, sizes []int, open func(testing.TB) *env) {
	for _, n := range sizes {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			w := open(b)
			w.copies(n)
			for _, step := range everyday {
				b.Run(step.name, func(b *testing.B) {
					p := measured(w)
					var spent cost
					for b.Loop() {
						b.StopTimer()
						do := step.ready(p)
						p.take()
						b.StartTimer()
						if err := do(); err != nil {
							b.Fatal(err)
						}
						b.StopTimer()
						spent, _, _ = p.take()
						p.decideAll()
						b.StartTimer()
					}
					b.ReportMetric(float64(spent.reads), "reads/op")
					b.ReportMetric(float64(spent.read), "docs-read/op")
					b.ReportMetric(float64(spent.commits), "commits/op")
					b.ReportMetric(float64(spent.written), "docs-written/op")
				})
			}
		})
	}
}

// copies plays a run with an effect, and writes all its documents n times, each time with other IDs.
func (w *env) copies(n int) {
	w.t.Helper()
	rec := faulty.Record(w.store)
	p := measured(w)
	p.loop.Store = rec
	v := p.must("draft", "")
	if err := p.decide(v, run.ApproveOnce); err != nil {
		w.t.Fatal(err)
	}
	if err := p.resume(); err != nil {
		w.t.Fatal(err)
	}
	docs, err := rec.Left(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	docs = slices.DeleteFunc(docs, func(d store.Doc) bool { return strings.HasPrefix(d.Path, "users/") })
	random := rand.New(rand.NewSource(int64(n)))
	var page []store.Write
	for i := range n {
		other := strings.NewReplacer(v.RunID, run.NewID(random), v.ThreadID, run.NewID(random))
		for _, d := range docs {
			fields := maps.Clone(d.Fields)
			for name, value := range fields {
				if s, isText := value.(string); isText {
					fields[name] = other.Replace(s)
				}
			}
			page = append(page, store.Create(other.Replace(d.Path), fields, []byte(other.Replace(string(d.Data)))))
		}
		if len(page)+len(docs) > store.MaxWrites || i == n-1 {
			if _, err := w.store.Commit(context.Background(), page...); err != nil {
				w.t.Fatal(fmt.Errorf("past run %d: %w", i, err))
			}
			page = nil
		}
	}
}
