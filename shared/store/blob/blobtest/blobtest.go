// Package blobtest defines the contract of [blob.Store] as tests.
package blobtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/blob"
)

// Run tests a backend. open returns an empty store that no other test uses.
func Run(t *testing.T, open func(t testing.TB) blob.Store) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, st blob.Store)
	}{
		{"round trip", testRoundTrip},
		{"sizes", testSizes},
		{"gone", testGone},
		{"a name is written once", testOnce},
		{"many at once", testRace},
		{"deleted by several", testDeleteRace},
		{"names refused", testNames},
		{"too large", testTooLarge},
		{"cancelled before", testCancelled},
		{"out of time", testOutOfTime},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// Object returns the name of the nth object of the user with the content.
func Object(uid string, data []byte, n int) string {
	sum := sha256.Sum256(data)
	return blob.Name(uid, hex.EncodeToString(sum[:]), fmt.Sprintf("object%04d", n))
}

func create(t *testing.T, st blob.Store, name string, data []byte) {
	t.Helper()
	if err := st.Create(t.Context(), name, data); err != nil {
		t.Fatalf("create %s: %v", name, err)
	}
}

func wantBytes(t *testing.T, st blob.Store, name string, want []byte) {
	t.Helper()
	got, err := st.Read(t.Context(), name)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: read %d bytes, %v; want the %d bytes that were stored", name, len(got), err, len(want))
	}
}

func wantGone(t *testing.T, st blob.Store, name string) {
	t.Helper()
	if got, err := st.Read(t.Context(), name); !errors.Is(err, blob.ErrGone) || got != nil {
		t.Errorf("%s: read %d bytes, %v; want ErrGone", name, len(got), err)
	}
}

func testRoundTrip(t *testing.T, st blob.Store) {
	data := []byte("a line\r\n\x00\xff")
	ada, bob := Object("ada", data, 1), Object("bob", data, 1)
	create(t, st, ada, data)
	create(t, st, bob, data)
	if err := st.Delete(t.Context(), ada); err != nil {
		t.Fatal(err)
	}
	wantGone(t, st, ada)
	wantBytes(t, st, bob, data) // equal bytes of another user are another object
}

func testSizes(t *testing.T, st blob.Store) {
	for n, size := range []int{0, 1, 1 << 20, blob.MaxBytes} {
		data := bytes.Repeat([]byte{byte(n), 'x', '\n'}, size/3+1)[:size]
		name := Object("ada", data, n)
		create(t, st, name, data)
		wantBytes(t, st, name, data)
	}
}

func testGone(t *testing.T, st blob.Store) {
	name := Object("ada", nil, 1)
	wantGone(t, st, name)
	for range 2 {
		if err := st.Delete(t.Context(), name); err != nil {
			t.Errorf("the deletion of an object that does not exist: %v", err)
		}
	}
	create(t, st, name, nil)
	for range 2 {
		if err := st.Delete(t.Context(), name); err != nil {
			t.Errorf("a repeated deletion: %v", err)
		}
	}
	wantGone(t, st, name)
}

// testOnce repeats a call whose answer was lost. The repeated call encrypts again, so its bytes differ.
func testOnce(t *testing.T, st blob.Store) {
	name := Object("ada", []byte("first"), 1)
	create(t, st, name, []byte("first"))
	create(t, st, name, []byte("second"))
	wantBytes(t, st, name, []byte("first"))
}

func testRace(t *testing.T, st blob.Store) {
	data := bytes.Repeat([]byte("race"), 10_000)
	var wg sync.WaitGroup
	for n := range 8 {
		for range 2 {
			wg.Go(func() {
				if err := st.Create(t.Context(), Object("ada", data, n), data); err != nil {
					t.Errorf("create: %v", err)
				}
			})
		}
	}
	wg.Wait()
	for n := range 8 {
		wantBytes(t, st, Object("ada", data, n), data)
	}
}

// testDeleteRace deletes an object while another one with the same bytes is created: the new one stays.
func testDeleteRace(t *testing.T, st blob.Store) {
	data := []byte("the same bytes")
	old, young := Object("ada", data, 1), Object("ada", data, 2)
	create(t, st, old, data)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := st.Delete(t.Context(), old); err != nil {
				t.Errorf("delete: %v", err)
			}
		})
	}
	wg.Go(func() {
		if err := st.Create(t.Context(), young, data); err != nil {
			t.Errorf("create: %v", err)
		}
	})
	wg.Wait()
	wantGone(t, st, old)
	wantBytes(t, st, young, data)
}

func testNames(t *testing.T, st blob.Store) {
	good := Object("ada", nil, 1)
	owner, rest, _ := strings.Cut(good, "/")
	for _, name := range []string{"", "a", owner, owner + "/" + owner + "/object0001", "/" + good, good + "/",
		good + "\n", "../" + good, strings.ToUpper(owner) + "/" + rest, owner + "//" + rest, owner + "/../" + rest,
		good + "\x00", good + "/../object0002"} {
		_, err := st.Read(t.Context(), name)
		if err == nil || errors.Is(err, blob.ErrGone) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("read %q: %v; want the name refused", name, err)
		}
		if err := st.Create(t.Context(), name, nil); err == nil {
			t.Errorf("create %q: no error", name)
		}
		if err := st.Delete(t.Context(), name); err == nil {
			t.Errorf("delete %q: no error", name)
		}
	}
}

func testTooLarge(t *testing.T, st blob.Store) {
	data := make([]byte, blob.MaxBytes+1)
	name := Object("ada", data, 1)
	if err := st.Create(t.Context(), name, data); err == nil || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("an object above the limit: %v", err)
	}
	wantGone(t, st, name)
}

func testCancelled(t *testing.T, st blob.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	name := Object("ada", nil, 1)
	if err := st.Create(ctx, name, nil); !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("create: %v; want context.Canceled", err)
	}
	wantGone(t, st, name)
	if _, err := st.Read(ctx, name); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v; want context.Canceled", err)
	}
	if err := st.Delete(ctx, name); !errors.Is(err, context.Canceled) {
		t.Errorf("delete: %v; want context.Canceled", err)
	}
}

func testOutOfTime(t *testing.T, st blob.Store) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	name := Object("ada", nil, 1)
	if err := st.Create(ctx, name, nil); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("create: %v; want store.ErrUnavailable", err)
	}
	if _, err := st.Read(ctx, name); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("read: %v; want store.ErrUnavailable", err)
	}
}
