package app

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Telemetry sends traces or metrics of a process to a collector.
type Telemetry interface {
	// Send sends what was not sent yet, or until ctx ends. It also logs why it cannot.
	Send(ctx context.Context)
	io.Closer
}

// sendTime is how long a request may last beyond its answer because of what is sent then.
const sendTime = 2 * time.Second

// sending returns a handler that has the telemetry be sent after the answer of each request that is the last one under
// way, and before it returns: then a function may have no CPU. While others are under way it has one, so that what is
// left goes out by the clock, or with the last of them. What a caller says of a trace of its own does not count:
// anybody could choose ids, and have all be sampled.
func sending(all []Telemetry, next http.Handler) http.Handler {
	if len(all) == 0 {
		return next
	}
	var underWay atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		underWay.Add(1)
		defer func() {
			if underWay.Add(-1) == 0 {
				send(all, w, r)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func send(all []Telemetry, w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).Flush() // what cannot be flushed is sent when the handler returns
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), sendTime)
	defer cancel()
	var side sync.WaitGroup
	for _, t := range all {
		side.Go(func() { t.Send(ctx) })
	}
	side.Wait()
}
