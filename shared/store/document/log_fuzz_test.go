package document_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store/document"
)

// maxChunkDocument is the limit of a chunk's document in bytes: maxChunk and the brackets.
const maxChunkDocument = 600<<10 + 2

// sizes holds the sizes of the appended items, from 0 to more than a whole chunk.
var sizes = []int{0, 1, 40, 1000, 20_000, 60_000, 130_000, 262_000, 615_000}

// FuzzLog appends any number of items of any size. It checks that they read back in order, that each document stays
// within its bounds, and that an append to a copy, as by a commit that loses its race, does not change the original.
// Each byte of the plan is one append.
func FuzzLog(f *testing.F) {
	f.Add(0, 1, []byte("\x00\x02\x03\x04\x05\x06\x07\x08"))
	f.Add(20, 60, bytes.Repeat([]byte{3, 4, 0x42, 5}, 2))
	f.Add(3, 4, []byte("\x48\x07\x07\x07\xc6\x00\x08\x08"))
	f.Add(0, 1, bytes.Repeat([]byte{7}, 6))
	f.Add(30, 31, bytes.Repeat([]byte{0xc1}, 8))
	f.Fuzz(func(t *testing.T, keep, most int, plan []byte) {
		if keep < 0 || keep > 100 || most <= keep || most > 200 || len(plan) > 8 {
			return
		}
		w := written{chunks: map[int64]json.RawMessage{}, next: 1}
		for _, step := range plan {
			before := w.log
			w.append(t, keep, most, w.items(step))
			for _, copied := range []document.Log[string]{before, w.log} {
				if _, err := copied.Append(keep, most, w.items(0x48)...); err != nil {
					t.Fatal(err)
				}
			}
			w.bounded(t, most)
		}
		w.readBack(t)
	})
}

// written is a log, the documents of its chunks, and the items that it should hold.
type written struct {
	log    document.Log[string]
	chunks map[int64]json.RawMessage
	want   []string
	next   int64 // the first item that is in no chunk yet
	size   int   // of the tail, in bytes
}

// items returns one to four texts, or a large one: the upper two bits of the step set the number, the others the size.
// No two in a log are equal, and some need escapes.
func (w *written) items(step byte) []string {
	size := sizes[int(step&0x3f)%len(sizes)]
	out := make([]string, 1+step>>6)
	if size > 100_000 {
		out = out[:1]
	}
	for i := range out {
		out[i] = fmt.Sprintf("%d\n<\u2028>", len(w.want)+i) + strings.Repeat("x", size)
	}
	return out
}

func (w *written) append(t *testing.T, keep, most int, items []string) {
	t.Helper()
	w.want = append(w.want, items...)
	measured := w.log
	w.log.Within(w.size)
	chunks, err := w.log.Append(keep, most, items...)
	if err != nil {
		t.Fatal(err)
	}
	same, err := measured.Append(keep, most, items...)
	if err != nil || !reflect.DeepEqual(same, chunks) || !reflect.DeepEqual(measured, w.log) {
		t.Fatalf("%v: a log whose size is known is cut in another place", err)
	}
	for _, c := range chunks {
		data, err := strictjson.Marshal(c.Items)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > maxChunkDocument && len(c.Items) > 1 || len(c.Items) == 0 {
			t.Fatalf("a chunk of %d items has %d bytes", len(c.Items), len(data))
		}
		if c.First != w.next {
			t.Fatalf("a chunk begins with item %d, and item %d is the next", c.First, w.next)
		}
		w.chunks[c.First], w.next = data, c.First+int64(len(c.Items))
	}
}

// bounded checks the limits of the tail.
func (w *written) bounded(t *testing.T, most int) {
	t.Helper()
	tail, err := strictjson.Marshal(w.log.Tail)
	w.size = len(tail)
	if err != nil || len(tail) > document.MaxTail+2 || len(w.log.Tail) > most ||
		w.log.First() != int64(len(w.want)-len(w.log.Tail)+1) {
		t.Fatalf("%v: a tail of %d items from %d on, of %d bytes", err, len(w.log.Tail), w.log.First(), len(tail))
	}
}

func (w *written) readBack(t *testing.T) {
	t.Helper()
	if len(w.log.Chunks) != len(w.chunks) {
		t.Fatalf("%d chunks are known, and %d are written", len(w.log.Chunks), len(w.chunks))
	}
	var parts []json.RawMessage
	for _, first := range w.log.Chunks {
		parts = append(parts, w.chunks[first])
	}
	got, err := w.log.All(parts...)
	if err != nil || !slices.Equal(got, w.want) || w.log.Count != int64(len(w.want)) {
		t.Fatalf("%v: %d items of %d", err, len(got), len(w.want))
	}
}
