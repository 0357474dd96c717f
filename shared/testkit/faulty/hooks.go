package faulty

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/countersign-run/countersign/shared/store"
)

// Killed is the panic value of a process that a hook kills. [Dies] recovers it.
type Killed struct{}

// KillBefore kills the process before the call.
func KillBefore(context.Context, *Call, Next) error { panic(Killed{}) }

// KillAfter kills the process after the call.
func KillAfter(ctx context.Context, _ *Call, next Next) error {
	_ = next(ctx) // the killed process cannot read the result
	panic(Killed{})
}

// Exit ends the calling goroutine before the call. Use it to kill a process where a panic would be recovered.
func Exit(context.Context, *Call, Next) error {
	runtime.Goexit()
	return nil
}

// Kill returns KillAfter or KillBefore.
func Kill(after bool) Hook {
	if after {
		return KillAfter
	}
	return KillBefore
}

// Dies runs f as a process that hooks may kill, and reports whether one did.
func Dies(f func()) (died bool) {
	defer func() {
		switch r := recover(); r {
		case nil:
		case Killed{}:
			died = true
		default:
			panic(r)
		}
	}()
	f()
	return false
}

// Down makes every call fail as if the store could not be reached.
func Down(ctx context.Context, c *Call, next Next) error {
	return Fail(store.ErrUnavailable)(ctx, c, next)
}

// Fail makes every call return err instead of reaching the store.
func Fail(err error) Hook { return func(context.Context, *Call, Next) error { return err } }

// Lost makes each call, but returns store.ErrUnavailable if the call succeeds, as if the answer were lost.
func Lost(ctx context.Context, _ *Call, next Next) error {
	if err := next(ctx); err != nil {
		return err
	}
	return store.ErrUnavailable
}

// Before runs f before each call.
func Before(f func(*Call)) Hook {
	return func(ctx context.Context, c *Call, next Next) error {
		f(c)
		return next(ctx)
	}
}

// After runs f after each call that succeeded.
func After(f func(*Call)) Hook {
	return func(ctx context.Context, c *Call, next Next) error {
		err := next(ctx)
		if err == nil {
			f(c)
		}
		return err
	}
}

// Commits applies a hook only to commits.
func Commits(h Hook) Hook { return Of(func(c *Call) bool { return c.Method == Commit }, h) }

// Gets applies a hook only to reads by path.
func Gets(h Hook) Hook { return Of(func(c *Call) bool { return c.Method == Get }, h) }

// Of applies a hook to the chosen calls.
func Of(chosen func(*Call) bool, h Hook) Hook {
	return func(ctx context.Context, c *Call, next Next) error {
		if chosen(c) {
			return h(ctx, c, next)
		}
		return next(ctx)
	}
}

// Nth applies a hook only to the n-th call, counted from 1. If n is 0, it applies to no call.
func Nth(n int, h Hook) Hook { return Each(func(i int) bool { return i == n }, h) }

// Each applies a hook to the calls with the chosen numbers, counted from 1.
func Each(chosen func(n int) bool, h Hook) Hook {
	var n atomic.Int64
	return Of(func(*Call) bool { return chosen(int(n.Add(1))) }, h)
}
