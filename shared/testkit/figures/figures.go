// Package figures reports measurements of benchmarks for which a mean says little: the median and the 95th percentile
// of waiting times, and the peak of the heap.
package figures

import (
	"runtime"
	"runtime/metrics"
	"slices"
	"testing"
	"time"
)

// Times are repeated measurements of one duration.
type Times []time.Duration

// Since adds the time since began.
func (t *Times) Since(began time.Time) { *t = append(*t, time.Since(began)) }

// Report reports the median and the 95th percentile, in milliseconds, as NAME-p50-ms and NAME-p95-ms.
func (t Times) Report(b *testing.B, name string) {
	b.Helper()
	if len(t) == 0 {
		b.Fatalf("%s was not measured", name)
	}
	sorted := slices.Sorted(slices.Values(t))
	for unit, percent := range map[string]int{"-p50-ms": 50, "-p95-ms": 95} {
		b.ReportMetric(sorted[(len(sorted)-1)*percent/100].Seconds()*1e3, name+unit)
	}
}

// PeakHeap calls do and returns by how many MiB the heap grew meanwhile, including garbage that is not collected yet.
func PeakHeap(do func()) (mib float64) {
	const every = 2 * time.Millisecond
	runtime.GC()
	base, peak := heap(), uint64(0)
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			peak = max(peak, heap())
			select {
			case <-over:
				return
			case <-tick.C:
			}
		}
	}()
	do()
	close(over)
	<-watched
	return float64(max(peak, base)-base) / (1 << 20)
}

// heap returns the bytes of the heap's objects. Unlike [runtime.ReadMemStats] it does not stop the world.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// Allocated calls do and returns the number of bytes allocated meanwhile. Tests of an input's cost compare bytes,
// which, unlike times, are the same on every machine. No other goroutine may run at the same time.
func Allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
