package document

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// A Log is an append-only list. Its newest part, the tail, is kept inside the document that owns the log. When the tail
// outgrows its limits, the commit moves older items to chunk documents, whose paths follow from the log. Reading the
// tail needs no extra read, appending needs no extra write, and no access needs a query.
type Log[T any] struct {
	Chunks []int64 `json:"chunks,omitempty"` // the number of the first item of each chunk, oldest first
	Tail   []T     `json:"tail,omitempty"`
	Count  int64   `json:"count"` // number of all items; items are numbered from 1

	within int // upper bound for the tail's size in bytes, or 0 if unknown
}

// Size limits of a log.
const (
	MaxTail  = 256 << 10 // bytes of the tail
	maxChunk = 600 << 10 // bytes of one chunk document, unless a single item is larger
)

// A Chunk is a part of a log that must be written to a document of its own.
type Chunk[T any] struct {
	First int64
	Items []T
}

// ChunkPaths returns the paths of all chunk documents, oldest first.
func (l Log[T]) ChunkPaths(document, collection string) []string {
	paths := make([]string, len(l.Chunks))
	for i, first := range l.Chunks {
		paths[i] = ChunkPath(document, collection, first)
	}
	return paths
}

// Paths returns the paths of the chunk documents that contain any of the items first to last, oldest first.
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

// First returns the number of the first item in the tail.
func (l Log[T]) First() int64 { return l.Count - int64(len(l.Tail)) + 1 }

// Within records an upper bound for the tail's size in bytes, such as the size of the document that it was read from.
// The next Append then measures the tail only if it may have grown too large.
func (l *Log[T]) Within(bytes int) { l.within = bytes }

// Append adds items and returns the chunks that the same commit must write. If the tail is cut, its newest keep items
// stay in it, as far as MaxTail permits. The tail is cut when it has more than atMost items or more than MaxTail bytes.
// The error is that of encoding an item as JSON.
func (l *Log[T]) Append(keep, atMost int, items ...T) ([]Chunk[T], error) {
	return l.AppendWithin(MaxTail, keep, atMost, items...)
}

// AppendWithin is [Log.Append] with a smaller limit for the size of the tail. maxTail is in bytes and at most MaxTail.
func (l *Log[T]) AppendWithin(maxTail, keep, atMost int, items ...T) ([]Chunk[T], error) {
	sizes, total, err := measure(items)
	if err != nil {
		return nil, err
	}
	before, within := l.Tail, l.within
	l.Tail = slices.Concat(before, items) // exactly as long, because the next append copies it again
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

// measure returns the size of each item in a tail, and the sum, in bytes.
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

// spill removes the first n items from the tail and returns them as chunks of at most maxChunk bytes.
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
	l.Chunks = slices.Clip(l.Chunks) // so that a copy of the log, such as one whose commit failed, keeps its array
	for _, c := range out {
		l.Chunks = append(l.Chunks, c.First)
	}
	l.Tail = append([]T(nil), l.Tail[n:]...)
	return out
}

// All returns every item. chunks are the contents of the chunk documents, in the order of [Log.ChunkPaths]. The error
// reports a chunk that cannot be decoded or a wrong number of items.
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
		return nil, fmt.Errorf("document: a log has %d items; its document says %d", l.Count, len(all))
	}
	return all, nil
}
