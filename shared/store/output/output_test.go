package output_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	mathrand "math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/store/firestore"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/store/output"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
)

// onEachStore runs a test on each store.
func onEachStore(t *testing.T, test func(t *testing.T, st store.Store)) {
	t.Run("memory", func(t *testing.T) { test(t, memory.New(time.Now)) })
	t.Run("embedded", func(t *testing.T) {
		st, err := embedded.OpenMemory(time.Now)
		test(t, cleanup.Close(t, st, err))
	})
	t.Run("firestore", func(t *testing.T) {
		t.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(t))
		st, err := firestore.Open(t.Context(), "demo-"+strings.ToLower(rand.Text()), "")
		test(t, cleanup.Close(t, st, err))
	})
}

// source is the output of a call. It is longer than the stored part.
var source = func() []byte {
	b := make([]byte, output.Max+1000)
	r := mathrand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return b
}()

func begin(t interface{ Fatal(...any) }, st store.Store, id string) {
	path, content := output.Begin("run", id)
	data, err := json.Marshal(content)
	if err == nil {
		_, err = st.Commit(context.Background(), store.Create(path, nil, data))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func read(t interface{ Fatal(...any) }, st store.Store, id string) *output.Kept {
	k, err := output.Read(context.Background(), st, "run", id)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// from returns the stored output from a byte on. Its parts must be in order.
func from(t *rapid.T, st store.Store, k *output.Kept, at int64) (all []byte) {
	err := k.From(context.Background(), st, at, func(n int64, b []byte) error {
		if n != at+int64(len(all)) || len(b) == 0 {
			t.Fatalf("%d bytes from %d on come after %d", len(b), n, at+int64(len(all)))
		}
		all = append(all, b...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestWriteByTwoProcesses lets two processes write the same output, each from the position that it takes for its own.
// In every case the beginning of the output is stored, once, and can be read from any byte on.
func TestWriteByTwoProcesses(t *testing.T) {
	onEachStore(t, func(t *testing.T, st store.Store) {
		rapid.Check(t, func(t *rapid.T) {
			id := run.NewID(rand.Reader)
			begin(t, st, id)
			writers := []*output.Kept{read(t, st, id), read(t, st, id)}
			var stored int64
			for range rapid.IntRange(1, 6).Draw(t, "steps") {
				i := rapid.IntRange(0, 1).Draw(t, "writer")
				k := writers[i]
				at := rapid.Int64Range(0, k.Bytes).Draw(t, "at")
				end := min(int64(len(source)), at+rapid.Int64Range(0, 200_000).Draw(t, "bytes"))
				err := k.Append(context.Background(), st, at, source[at:end])
				switch {
				case errors.Is(err, store.ErrConflict):
					if k.Bytes == stored {
						t.Fatalf("a conflict of a writer that knows all %d bytes", stored)
					}
					writers[i] = read(t, st, id)
				case err != nil:
					t.Fatal(err)
				case end > stored:
					stored = min(end, output.Max)
				}
				now := read(t, st, id)
				if now.Bytes != stored {
					t.Fatalf("%d bytes are stored, want %d", now.Bytes, stored)
				}
				at = rapid.Int64Range(0, stored).Draw(t, "read from")
				if !bytes.Equal(from(t, st, now, at), source[at:stored]) {
					t.Fatalf("from %d of %d on something else is stored", at, stored)
				}
			}
		})
	})
}

// TestWriteRefused writes after a gap and to a deleted output. Nothing is stored.
func TestWriteRefused(t *testing.T) {
	onEachStore(t, func(t *testing.T, st store.Store) {
		ctx, id := t.Context(), "action"
		if err := read(t, st, id).Append(ctx, st, 0, source[:1]); !errors.Is(err, output.ErrGone) {
			t.Errorf("what was never begun: %v", err)
		}
		begin(t, st, id)
		k := read(t, st, id)
		if err := k.Append(ctx, st, 1, source[:1]); err == nil || k.Bytes != 0 {
			t.Errorf("a gap: %v", err)
		}
		if err := k.Append(ctx, st, 0, source[:200_000]); err != nil {
			t.Fatal(err)
		}
		late := *k
		parts, own := k.Deletes()
		if _, err := st.Commit(ctx, append(parts, own)...); err != nil {
			t.Fatal(err)
		}
		if err := late.Append(ctx, st, 200_000, source[200_000:400_000]); !errors.Is(err, store.ErrConflict) {
			t.Errorf("what was deleted: %v", err)
		}
		for _, first := range []int64{0, 64 << 10, 128 << 10, 192 << 10, 256 << 10} {
			docs, err := st.Get(ctx, document.OutputPartPath("run", id, first))
			if err != nil || docs[0].Exists() {
				t.Errorf("%v: the part from %d on is left", err, first)
			}
		}
	})
}

// TestFollow reads an output while it is written. Every byte arrives in order, and following ends with its context.
func TestFollow(t *testing.T) {
	onEachStore(t, func(t *testing.T, st store.Store) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var got []byte
		ended := make(chan error, 1)
		go func() { // it begins before the output does
			next, err := output.Follow(ctx, st, "run", "action", 0, func(at int64, b []byte) error {
				if at != int64(len(got)) {
					t.Errorf("bytes from %d on come after %d", at, len(got))
				}
				if got = append(got, b...); len(got) == 500_000 {
					stop()
				}
				return nil
			})
			if next != int64(len(got)) {
				t.Errorf("the next byte is %d after %d", next, len(got))
			}
			ended <- err
		}()
		begin(t, st, "action")
		k := read(t, st, "action")
		for at := int64(0); at < 500_000; at += 25_000 {
			if err := k.Append(t.Context(), st, at, source[at:at+25_000]); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-ended; err != nil || !bytes.Equal(got, source[:500_000]) {
			t.Errorf("%v, %d bytes", err, len(got))
		}
	})
}
