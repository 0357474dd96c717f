package document

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/strictjson"
)

// A Log is an append-only list whose newest part, the tail, is kept inside the document that it belongs to. The commit
// that outgrows the limits moves older parts to chunk documents, whose keys the log knows. Reading the tail costs no
// extra read, appending costs no extra write, and no access needs a query.
type Log[T any] struct {
	Chunks []int64 `json:"chunks,omitempty"` // the number of the first item of each chunk
	Tail   []T     `json:"tail,omitempty"`
	Count  int64   `json:"count"` // of all items; they are numbered from 1

	within int // bytes that the tail has at most, or 0 where that is not known
}

// The limits of a log.
const (
	MaxTail  = 256 << 10 // bytes of the tail
	maxChunk = 600 << 10 // bytes of one chunk document, unless a single item is larger
)

// A Chunk is a part of a log that must be written to its own document.
type Chunk[T any] struct {
	First int64
	Items []T
}

// ChunkPaths returns the paths of all chunks, oldest first.
func (l Log[T]) ChunkPaths(document, collection string) []string {
	paths := make([]string, len(l.Chunks))
	for i, first := range l.Chunks {
		paths[i] = ChunkPath(document, collection, first)
	}
	return paths
}

// Paths returns the paths of those chunks that hold items from number first to number last, oldest first.
func (l Log[T]) Paths(document, collection string, first, last int64) (paths []string) {
	for i, begins := range l.Chunks {
		next := l.First()
		if i+1 < len(l.Chunks) {
			next = l.Chunks[i+1]
		}
		if begins <= last && next > first {
			paths = append(paths, ChunkPath(document, collection, begins))
		}
	}
	return paths
}

// First returns the number of the tail's first item.
func (l Log[T]) First() int64 { return l.Count - int64(len(l.Tail)) + 1 }

// Within says that the tail has at most so many bytes, such as those of the document that it was read from. The next
// Append then measures it only if it may have become too large.
func (l *Log[T]) Within(bytes int) { l.within = bytes }

// Append adds items and returns the chunks that must be written in the same commit. keep is the number of newest items
// that stay in the tail even when it is cut, as far as MaxTail permits; atMost is the number of items that the tail may
// have.
func (l *Log[T]) Append(keep, atMost int, items ...T) ([]Chunk[T], error) {
	return l.AppendWithin(MaxTail, keep, atMost, items...)
}

// AppendWithin is [Log.Append] with a bound of its own on the tail's bytes, below MaxTail.
func (l *Log[T]) AppendWithin(maxTail, keep, atMost int, items ...T) ([]Chunk[T], error) {
	sizes, total, err := measure(items)
	if err != nil {
		return nil, err
	}
	before, within := l.Tail, l.within
	l.Tail = append(before[:len(before):len(before)], items...)
	l.Count += int64(len(items))
	l.within = 0
	if (within > 0 || len(before) == 0) && within+total <= maxTail && len(l.Tail) <= atMost {
		return nil, nil
	}
	older, more, err := measure(before)
	if err != nil {
		return nil, err
	}
	sizes, total = append(older, sizes...), total+more
	if total <= maxTail && len(l.Tail) <= atMost {
		return nil, nil
	}
	cut := 0
	for cut < len(l.Tail) && (len(l.Tail)-cut > keep || total > maxTail/2) {
		total -= sizes[cut]
		cut++
	}
	return l.spill(cut, sizes), nil
}

// measure returns the bytes of each item in a tail, and of all.
func measure[T any](items []T) (sizes []int, total int, err error) {
	sizes = make([]int, len(items))
	for i, it := range items {
		b, err := strictjson.Marshal(it)
		if err != nil {
			return nil, 0, err
		}
		sizes[i] = len(b) + 1
		total += sizes[i]
	}
	return sizes, total, nil
}

// spill removes the tail's first n items and returns them as chunks of bounded size.
func (l *Log[T]) spill(n int, sizes []int) []Chunk[T] {
	var out []Chunk[T]
	number, size := l.First(), 0
	for i, it := range l.Tail[:n] {
		if len(out) == 0 || size+sizes[i] > maxChunk {
			out, size = append(out, Chunk[T]{First: number + int64(i)}), 0
		}
		last := &out[len(out)-1]
		last.Items, size = append(last.Items, it), size+sizes[i]
	}
	l.Chunks = slices.Clip(l.Chunks) // do not share the array with a copy of the log, such as one whose commit failed
	for _, c := range out {
		l.Chunks = append(l.Chunks, c.First)
	}
	l.Tail = append([]T(nil), l.Tail[n:]...)
	return out
}

// All returns every item: those of the chunks' documents, which are given in the order of [Log.ChunkPaths], and the
// tail.
func (l Log[T]) All(chunks ...json.RawMessage) ([]T, error) {
	var all []T
	for _, c := range chunks {
		var part []T
		if err := json.Unmarshal(c, &part); err != nil {
			return nil, fmt.Errorf("document: a chunk of a log cannot be read: %w", err)
		}
		all = append(all, part...)
	}
	all = append(all, l.Tail...)
	if int64(len(all)) != l.Count {
		return nil, fmt.Errorf("document: a log of %d items has %d", l.Count, len(all))
	}
	return all, nil
}
