package taint

import (
	"crypto/sha256"
	"sync"

	"github.com/countersign-run/countersign/shared/base/memo"
)

// reading holds the forms in which a text is compared. They depend on the text alone.
type reading struct {
	normal string
	hidden func() string // the skeleton, without marks; it is made at the first call
}

// A process computes the readings of a long text once, although each step of a run has a record of its own. The cache
// holds at most 8 of them, and none of a text beyond longestCached, so it stays below 32 MiB.
const (
	leastCached   = 16 << 10
	longestCached = 1 << 20
)

var readings = memo.New[[sha256.Size]byte, *reading](4)

// makeReading is newReading, which a test counts.
var makeReading = newReading

func readingOf(s string) *reading {
	if len(s) < leastCached || len(s) > longestCached {
		return makeReading(s)
	}
	key := sha256.Sum256([]byte(s))
	if r, ok := readings.Get(key); ok {
		return r
	}
	r := makeReading(s)
	readings.Put(key, r)
	return r
}

func newReading(s string) *reading {
	r := &reading{normal: Normalize(s)}
	r.hidden = sync.OnceValue(func() string { return disguised(s, r.normal, nil) })
	return r
}
