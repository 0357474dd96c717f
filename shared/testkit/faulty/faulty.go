// Package faulty wraps a [store.Store] so that a test sees each call and can change its result: the call fails, its
// answer is lost, it takes long, or the process dies before or after it. Everything here is a [Hook], selects the calls
// of a hook ([Commits], [Nth], …), or records calls with a hook ([Count], [Record]).
//
//	st := faulty.Wrap(st, faulty.Commits(faulty.Nth(3, faulty.KillAfter)))
package faulty

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// Method is a method of a store.
type Method string

// The methods of a store.
const (
	Get    Method = "get"
	Query  Method = "query"
	Commit Method = "commit"
	Watch  Method = "watch" // each state that is delivered is a call
)

// Call is one call of a store. A hook may replace the arguments before it calls next, and the results afterwards.
type Call struct {
	Method Method
	Paths  []string      // of a Get or a Watch
	Query  store.Query   // of a Query
	Writes []store.Write // of a Commit

	Docs     []store.Doc // read by a Get or a Query, or the state that a Watch delivers
	Versions []time.Time // of a Commit
}

// Next makes the call that a hook wraps.
type Next func(ctx context.Context) error

// Hook wraps a call. The call happens when the hook calls next, and the caller gets the hook's error. Hooks are called
// concurrently, as stores are.
type Hook func(ctx context.Context, c *Call, next Next) error

// Store is a store with hooks around its calls.
type Store struct {
	store.Store
	hooks atomic.Pointer[[]Hook]
}

// Wrap returns st with hooks; the first hook is the outermost.
func Wrap(st store.Store, hooks ...Hook) *Store {
	s := &Store{Store: st}
	s.Set(hooks...)
	return s
}

// Set replaces the hooks. Without hooks, the store behaves like the wrapped store.
func (s *Store) Set(hooks ...Hook) { s.hooks.Store(&hooks) }

// call makes a call through the hooks.
func (s *Store) call(ctx context.Context, c *Call, do Next) error {
	hooks := *s.hooks.Load()
	for i := len(hooks) - 1; i >= 0; i-- {
		hook, next := hooks[i], do
		do = func(ctx context.Context) error { return hook(ctx, c, next) }
	}
	return do(ctx)
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, paths ...string) ([]store.Doc, error) {
	c := &Call{Method: Get, Paths: paths}
	err := s.call(ctx, c, func(ctx context.Context) (err error) {
		c.Docs, err = s.Store.Get(ctx, c.Paths...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.Docs, nil
}

// Query implements [store.Store].
func (s *Store) Query(ctx context.Context, q store.Query) ([]store.Doc, error) {
	c := &Call{Method: Query, Query: q}
	err := s.call(ctx, c, func(ctx context.Context) (err error) {
		c.Docs, err = s.Store.Query(ctx, c.Query)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.Docs, nil
}

// Commit implements [store.Store].
func (s *Store) Commit(ctx context.Context, writes ...store.Write) ([]time.Time, error) {
	c := &Call{Method: Commit, Writes: writes}
	err := s.call(ctx, c, func(ctx context.Context) (err error) {
		c.Versions, err = s.Store.Commit(ctx, c.Writes...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.Versions, nil
}

// Watch implements [store.Store]. Each state is a call: the hooks wrap its delivery, and an error from a hook ends the
// sequence.
func (s *Store) Watch(ctx context.Context, path string) iter.Seq2[store.Doc, error] {
	return func(yield func(store.Doc, error) bool) {
		for d, err := range s.Store.Watch(ctx, path) {
			c := &Call{Method: Watch, Paths: []string{path}}
			failed := s.call(ctx, c, func(context.Context) error {
				if err == nil {
					c.Docs = []store.Doc{d}
				}
				return err
			})
			if failed != nil {
				yield(store.Doc{}, failed)
				return
			}
			if !yield(c.Docs[0], nil) {
				return
			}
		}
	}
}

// While runs f with only this hook, and removes all hooks afterwards.
func (s *Store) While(h Hook, f func()) {
	s.Set(h)
	defer s.Set()
	f()
}
