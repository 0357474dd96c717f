package embedded_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/embedded"
)

func Benchmark(b *testing.B) {
	for name, open := range map[string]func(b *testing.B) *embedded.Store{
		"file":   func(b *testing.B) *embedded.Store { return file(b, b.TempDir(), time.Now) },
		"memory": func(b *testing.B) *embedded.Store { return memory(b, time.Now) },
	} {
		b.Run(name+"/commit2", func(b *testing.B) { benchCommit(b, open(b)) })
		for _, committers := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/turn%d", name, committers), func(b *testing.B) { benchTurn(b, open(b), committers) })
		}
		b.Run(name+"/get3", func(b *testing.B) { benchGet(b, open(b)) })
		for _, size := range []int{1000, 20000} {
			b.Run(fmt.Sprintf("%s/query20of%d", name, size), func(b *testing.B) { benchQuery(b, open(b), size) })
		}
	}
}

var body = []byte(`{"text":"` + strings.Repeat("x", 1000) + `"}`)

func benchCommit(b *testing.B, st store.Store) {
	due := map[string]any{"uid": "u", "threadId": "t", "createdAt": time.Now(), "due": time.Now(),
		"dueShard": int64(7)}
	v, err := st.Commit(b.Context(), store.Create("runs/a", due, body))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if v, err = st.Commit(b.Context(), store.Update("runs/a", v[0], due, body),
			store.Create(fmt.Sprintf("runs/a/events/%06d", n), nil, body)); err != nil {
			b.Fatal(err)
		}
	}
}

// benchTurn commits the writes of one model turn, with several concurrent committers that each write a run of their
// own. It reports the 99th percentile of the commit time.
func benchTurn(b *testing.B, st store.Store, committers int) {
	runs := make([]*turner, committers)
	for i := range runs {
		runs[i] = &turner{id: fmt.Sprintf("run_%016d", i*7919%1000)}
		runs[i].commit(b, st)
	}
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime(b)
	var next atomic.Int64
	var all sync.WaitGroup
	took := make([]time.Duration, b.N)
	for _, r := range runs {
		all.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				began := time.Now()
				r.commit(b, st)
				took[n-1] = time.Since(began)
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
	b.ReportMetric(float64(took[len(took)-1].Microseconds()), "max-us")
}

// cpuTime returns the processor time that this process has used.
func cpuTime(t testing.TB) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

type turner struct {
	id       string
	turns    int
	versions []time.Time
}

func (r *turner) commit(b *testing.B, st store.Store) {
	at := time.Now()
	run := map[string]any{"uid": "user-" + r.id, "threadId": "thread-" + r.id, "status": "planning", "createdAt": at,
		"due": at.Add(time.Minute)}
	thread := map[string]any{"uid": "user-" + r.id, "updatedAt": at}
	entry := store.Create(fmt.Sprintf("audit/%s_%06d", r.id, r.turns), map[string]any{"uid": "user-" + r.id,
		"runId": r.id, "seq": int64(r.turns), "at": at}, body[:400])
	writes := []store.Write{store.Create("runs/"+r.id, run, body), store.Create("threads/"+r.id, thread, body),
		store.Create("users/"+r.id, nil, body), entry}
	if v := r.versions; v != nil {
		writes = []store.Write{store.Update("runs/"+r.id, v[0], run, body),
			store.Update("threads/"+r.id, v[1], thread, body), store.Update("users/"+r.id, v[2], nil, body), entry}
	}
	var err error
	if r.versions, err = st.Commit(b.Context(), writes...); err != nil {
		b.Error(err)
	}
	r.turns++
}

func benchGet(b *testing.B, st store.Store) {
	if _, err := st.Commit(b.Context(), store.Create("runs/a", nil, body),
		store.Create("runs/b", nil, body)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := st.Get(b.Context(), "runs/a", "runs/b", "runs/none"); err != nil {
			b.Fatal(err)
		}
	}
}

func benchQuery(b *testing.B, st store.Store, size int) {
	for n := 0; n < size; {
		var writes []store.Write
		for range store.MaxWrites {
			f := map[string]any{"uid": fmt.Sprint(n % 7), "status": "pending", "requestedAt": time.UnixMicro(int64(n))}
			writes = append(writes, store.Create(fmt.Sprintf("approvals/%06d", n), f, body))
			n++
		}
		if _, err := st.Commit(b.Context(), writes...); err != nil {
			b.Fatal(err)
		}
	}
	q := store.Query{Collection: "approvals", OrderBy: "requestedAt", Desc: true, Limit: 20,
		After: &store.Cursor{Value: time.UnixMicro(int64(size / 2)), ID: "x"},
		Where: []store.Filter{{Field: "uid", Op: "==", Value: "1"}, {Field: "status", Op: "==", Value: "pending"}}}
	b.ReportAllocs()
	for b.Loop() {
		docs, err := st.Query(b.Context(), q)
		if err != nil || len(docs) != 20 {
			b.Fatal(len(docs), err)
		}
	}
}
