package embedded_test

import (
	"fmt"
	"strings"
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
