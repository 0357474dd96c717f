package hostile

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/store"
)

// outage is a store that can be switched off, or kill the process that uses it.
type outage struct {
	store.Store
	on   atomic.Bool // it does not answer
	dead atomic.Bool // its caller dies at that moment, as if killed
}

func (o *outage) under(l *loop.Loop) { o.Store, l.Store = l.Store, o }

func (o *outage) fails() error {
	if o.dead.Load() {
		runtime.Goexit()
	}
	if o.on.Load() {
		return store.ErrUnavailable
	}
	return nil
}

// Get implements store.Store.
func (o *outage) Get(ctx context.Context, paths ...string) ([]store.Doc, error) {
	if err := o.fails(); err != nil {
		return nil, err
	}
	return o.Store.Get(ctx, paths...)
}

// Query implements store.Store.
func (o *outage) Query(ctx context.Context, q store.Query) ([]store.Doc, error) {
	if err := o.fails(); err != nil {
		return nil, err
	}
	return o.Store.Query(ctx, q)
}

// Commit implements store.Store.
func (o *outage) Commit(ctx context.Context, writes ...store.Write) ([]time.Time, error) {
	if err := o.fails(); err != nil {
		return nil, err
	}
	return o.Store.Commit(ctx, writes...)
}
