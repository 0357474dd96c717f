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
	// Send sends the unsent data, until ctx ends. It logs an error.
	Send(ctx context.Context)
	io.Closer
}

// sendTime is the maximum time that sending telemetry adds to a request, after its answer.
const sendTime = 2 * time.Second

// sending returns a handler that sends the telemetry after the answer of the last request in progress, before the
// handler returns, because a function may have no CPU afterwards. While other requests are in progress the function has
// CPU, so telemetry is sent by a timer or with the last of them. A caller's own trace ID is ignored: anyone could
// choose IDs and have all runs sampled.
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
	_ = http.NewResponseController(w).Flush() // an unflushed response is sent when the handler returns
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), sendTime)
	defer cancel()
	var side sync.WaitGroup
	for _, t := range all {
		side.Go(func() { t.Send(ctx) })
	}
	side.Wait()
}
