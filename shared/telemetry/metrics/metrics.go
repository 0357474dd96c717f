// Package metrics records measurements in OpenTelemetry's model: instruments, each with a value for every combination
// of attributes. It defines no instruments and sends nothing; package otlp sends. A nil *Metrics records nothing, at no
// cost.
package metrics

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Kind is how an instrument combines its measurements.
type Kind int

// The kinds of instruments.
const (
	Counter   Kind = iota // the sum
	Histogram             // the number of measurements in each bucket
	Gauge                 // the last value
)

// An Instrument measures one quantity. Instruments are compared by pointer.
type Instrument struct {
	Kind                    Kind
	Name, Unit, Description string
	Bounds                  []float64 // inclusive upper bounds of a histogram's buckets
}

// An Attr distinguishes values of an instrument. It must have few possible values: no IDs, no addresses, nothing that a
// stranger can choose. An Attr without a value is left out.
type Attr struct{ Key, Value string }

// MaxAttrs is the maximum number of attributes of a value.
const MaxAttrs = 4

// A Series is an instrument with one combination of attributes. Its measurements are combined.
type Series struct {
	Of    *Instrument
	Attrs [MaxAttrs]Attr // unused ones are empty
}

// A Point is the combined measurement of a series.
type Point struct {
	Series
	At      time.Time // for a gauge: time of the measurement
	Value   float64   // for a histogram: the sum
	Count   uint64    // number of measurements
	Buckets []uint64  // for a histogram: one more than there are bounds
}

// A Batch holds the measurements of a period.
type Batch struct {
	From, To time.Time
	New      bool     // some of them were in no earlier batch
	Points   []*Point // grouped by instrument
}

// maxSeries bounds the memory of a process. Further series are combined under the attribute overflow, as in
// OpenTelemetry's SDKs.
const maxSeries = 2000

var overflow = Attr{"otel.metric.overflow", "true"}

// Metrics are the measurements of a process. They are safe for concurrent use.
type Metrics struct {
	now func() time.Time

	mu     sync.Mutex
	from   time.Time
	fresh  bool // something is in no batch yet
	points map[Series]*Point
}

// New returns empty metrics. now is their clock.
func New(now func() time.Time) *Metrics {
	return &Metrics{now: now, from: now(), points: map[Series]*Point{}}
}

// Measure records a value for the instrument with the attributes. Attributes beyond MaxAttrs are dropped. Measure does
// nothing if m is nil.
func (m *Metrics) Measure(of *Instrument, value float64, attrs ...Attr) {
	if m == nil {
		return
	}
	s := Series{Of: of}
	copy(s.Attrs[:], attrs)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fresh = true
	p := m.point(s)
	p.Count++
	switch of.Kind {
	case Gauge:
		p.At, p.Value = m.now(), value
	case Histogram:
		i, _ := slices.BinarySearch(of.Bounds, value)
		p.Buckets[i]++
		fallthrough
	case Counter:
		p.Value += value
	}
}

// point returns the point of the series, or the overflow point if there are too many series.
func (m *Metrics) point(s Series) *Point {
	p := m.points[s]
	if p == nil && len(m.points) >= maxSeries {
		s.Attrs = [MaxAttrs]Attr{overflow}
		p = m.points[s]
	}
	if p == nil {
		p = &Point{Series: s}
		if s.Of.Kind == Histogram {
			p.Buckets = make([]uint64, len(s.Of.Bounds)+1)
		}
		m.points[s] = p
	}
	return p
}

// Batch returns the measurements so far. If take is true, it also removes them, so that the next batch starts from
// zero.
func (m *Metrics) Batch(take bool) Batch {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := Batch{From: m.from, To: m.now(), New: m.fresh, Points: make([]*Point, 0, len(m.points))}
	for _, p := range m.points {
		copied := *p
		copied.Buckets = slices.Clone(p.Buckets)
		b.Points = append(b.Points, &copied)
	}
	if m.fresh = false; take {
		m.from, m.points = b.To, map[Series]*Point{}
	}
	slices.SortFunc(b.Points, func(p, q *Point) int {
		return cmp.Or(strings.Compare(p.Of.Name, q.Of.Name), slices.CompareFunc(p.Attrs[:], q.Attrs[:], byValue))
	})
	return b
}

func byValue(a, b Attr) int {
	return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Value, b.Value))
}
