package await_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// failing is a test that records its failure.
type failing struct {
	*testing.T
	kept atomic.Value
}

func (f *failing) Fatalf(format string, args ...any) {
	f.kept.Store(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (f *failing) said() string {
	said, _ := f.kept.Load().(string)
	return said
}

// TestThat waits for a state that is reached, and for one that is never reached.
func TestThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks, began := 0, time.Now()
		await.That(t, "the third look", func() bool { looks++; return looks == 3 })
		if looks != 3 {
			t.Errorf("%d looks", looks)
		}
		f := &failing{T: t}
		go await.That(f, "the end of days", func() bool { return time.Since(began) > time.Hour })
		time.Sleep(290 * time.Second)
		if synctest.Wait(); f.said() != "" {
			t.Errorf("after 290 s: %s", f.said())
		}
		time.Sleep(15 * time.Second)
		if synctest.Wait(); f.said() != "waited 5m0s in vain: the end of days" {
			t.Errorf("after 305 s: %q", f.said())
		}
	})
}
