package figures_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/figures"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestReport(t *testing.T) {
	got := testing.Benchmark(func(b *testing.B) {
		var took figures.Times
		for ms := range 101 {
			took = append(took, time.Duration(100-ms)*time.Millisecond)
		}
		took.Report(b, "it")
	})
	if got.Extra["it-p50-ms"] != 50 || got.Extra["it-p95-ms"] != 95 {
		t.Errorf("%v; want got.Extra[\"it-p50-ms\"] 50, got.Extra[\"it-p95-ms\"] 95", got.Extra)
	}
}

var held []byte

func TestPeakHeap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := figures.PeakHeap(func() {
			held = make([]byte, 32<<20)
			time.Sleep(20 * time.Millisecond)
			held = nil
		})
		if got < 30 || got > 64 {
			t.Errorf("32 MiB are measured as %.1f", got)
		}
	})
}

func TestAllocated(t *testing.T) {
	if got := figures.Allocated(func() { held = make([]byte, 32<<20) }); got < 32<<20 || got > 33<<20 {
		t.Errorf("32 MiB are measured as %d bytes", got)
	}
}
