package demohost_test

import (
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/scripts/dev/demohost"
)

// TestCloseDuringConnects closes the host while clients connect. The race detector finds nothing, and no connection is
// served on a closed disk.
func TestCloseDuringConnects(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "host")
	for range 30 {
		h, err := demohost.Open(demohost.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := h.Serve(ln); err != nil {
				t.Error(err)
			}
		})
		begun := make(chan struct{}, 1)
		wg.Go(func() {
			for range 20 {
				c, err := net.Dial("tcp", ln.Addr().String())
				if err != nil {
					return
				}
				select {
				case begun <- struct{}{}:
				default:
				}
				_ = c.Close()
			}
		})
		<-begun
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	}
}
