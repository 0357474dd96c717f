// Package metrics measures what a process does, as OpenTelemetry has it: instruments, each with a value for every
// combination of its attributes. It knows nothing of what is measured, and sends nothing; package otlp does that. A nil
// *Metrics measures nothing, at no cost.
package metrics

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Kind says what an instrument makes of what is measured.
type Kind int

// The kinds.
const (
	Counter   Kind = iota // the sum
	Histogram             // how often which size was measured
	Gauge                 // the last value
)

// An Instrument measures one thing. Instruments are told apart by their addresses.
type Instrument struct {
	Kind                    Kind
	Name, Unit, Description string
	Bounds                  []float64 // of a histogram's buckets, which hold what is not above them
}

// An Attr tells values of an instrument apart. There must be few values: no ids, no addresses, nothing that a stranger
// can choose. One without a value is left out.
type Attr struct{ Key, Value string }

// MaxAttrs is how many attributes a value has at most.
const MaxAttrs = 4

// A Series is what its values are added up in: an instrument with its attributes.
type Series struct {
	Of    *Instrument
	Attrs [MaxAttrs]Attr // those that are not used are empty
}

// A Point is what was measured of a series.
type Point struct {
	Series
	At      time.Time // of a gauge: when it was measured
	Value   float64   // of a histogram: the sum
	Count   uint64    // how often
	Buckets []uint64  // of a histogram, one more than there are bounds
}

// A Batch is what was measured within a time.
type Batch struct {
	From, To time.Time
	New      bool     // something of it was in no batch before
	Points   []*Point // those of one instrument one behind the other
}

// maxSeries bounds the memory of a process. What goes beyond it is counted together, under this attribute, as
// OpenTelemetry's SDKs do.
const maxSeries = 2000

var overflow = Attr{"otel.metric.overflow", "true"}

// Metrics are what a process has measured. They are safe for concurrent use.
type Metrics struct {
	now func() time.Time

	mu     sync.Mutex
	from   time.Time
	fresh  bool // something is in no batch yet
	points map[Series]*Point
}

// New returns metrics of nothing yet.
func New(now func() time.Time) *Metrics {
	return &Metrics{now: now, from: now(), points: map[Series]*Point{}}
}

// Measure adds a value to the series of the instrument with the attributes, of which there are at most MaxAttrs.
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

// point returns the point of the series, or where there are too many the one of all that are too many.
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

// Batch returns what was measured so far, or where it is taken, since it last was.
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
