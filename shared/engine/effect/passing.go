package effect

import (
	"context"
	"sync"
	"time"
)

// Limits of a call's output.
const (
	maxPiece   = 4 << 10                // bytes of one update
	pieceEvery = 100 * time.Millisecond // minimum time between two updates during a call
	outputCut  = "\n[More was printed than can be shown.]\n"
)

// passing is a goroutine that passes output on.
type passing struct {
	wake   chan struct{} // there is something to pass on
	stop   context.CancelFunc
	closed chan struct{} // closed when nothing more is passed on

	mu   sync.Mutex // guards over, and the output of the type that embeds this
	over bool       // later writes are ignored
}

// newPassing also returns the context that ends with the output.
func newPassing() (*passing, context.Context) {
	ctx, stop := context.WithCancel(context.Background())
	return &passing{wake: make(chan struct{}, 1), stop: stop, closed: make(chan struct{})}, ctx
}

// signal wakes the goroutine.
func (p *passing) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Close passes on the rest. Later writes are ignored.
func (p *passing) Close() {
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	p.stop()
	<-p.closed
}
