package demohost

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// TestExpiry checks that a console ends some time after its user has left it for the last time.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := Open(Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		c := h.openConsole(supervisor.Size{Cols: 80, Rows: 24})
		look := func(d time.Duration) {
			c.stay()
			viewer := &shown{}
			c.screen.show(viewer)
			time.Sleep(d)
			c.screen.leave(viewer)
			c.expire(time.Hour)
		}
		look(0)
		time.Sleep(50 * time.Minute)
		look(5 * time.Minute)
		time.Sleep(50 * time.Minute)
		synctest.Wait()
		if c.ctx.Err() != nil {
			t.Error("it ends an hour after it was left the first time")
		}
		time.Sleep(11 * time.Minute)
		<-c.over
	})
}
