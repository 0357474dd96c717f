package toolstest

import (
	"context"
	"sync"
)

// An Expiring is a context that ends, like by a deadline, when Expire is called. Tests end hanging calls with it,
// independently of the speed of the machine.
type Expiring struct {
	context.Context
	over chan struct{}
	once sync.Once
}

// NewExpiring returns a context with the values of ctx.
func NewExpiring(ctx context.Context) *Expiring {
	return &Expiring{Context: ctx, over: make(chan struct{})}
}

// Expire ends the context.
func (e *Expiring) Expire() { e.once.Do(func() { close(e.over) }) }

// Done implements [context.Context].
func (e *Expiring) Done() <-chan struct{} { return e.over }

// Err implements [context.Context].
func (e *Expiring) Err() error {
	select {
	case <-e.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
