package faulty

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/countersign-run/countersign/shared/store"
)

// Killed is the value with which a process panics that dies in a test ([KillBefore], [Dies]).
type Killed struct{}

// KillBefore ends the process before the call takes place.
func KillBefore(context.Context, *Call, Next) error { panic(Killed{}) }

// KillAfter ends the process after the call has taken place.
func KillAfter(ctx context.Context, _ *Call, next Next) error {
	_ = next(ctx) // no process is left that hears of it
	panic(Killed{})
}

// Exit ends the goroutine that calls, before the call takes place: a process that dies where a panic would be
// recovered.
func Exit(context.Context, *Call, Next) error {
	runtime.Goexit()
	return nil
}

// Kill is KillAfter or KillBefore.
func Kill(after bool) Hook {
	if after {
		return KillAfter
	}
	return KillBefore
}

// Dies runs f as a process that may be killed, and reports whether it was.
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

// Down has no call take place: the store does not answer.
func Down(ctx context.Context, c *Call, next Next) error {
	return Fail(store.ErrUnavailable)(ctx, c, next)
}

// Fail has no call take place, and returns err for it.
func Fail(err error) Hook { return func(context.Context, *Call, Next) error { return err } }

// Lost has each call take place, and its caller not hear of it.
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

// Commits applies a hook to commits alone.
func Commits(h Hook) Hook { return Of(func(c *Call) bool { return c.Method == Commit }, h) }

// Gets applies a hook to reads by path alone.
func Gets(h Hook) Hook { return Of(func(c *Call) bool { return c.Method == Get }, h) }

// Of applies a hook to the calls that are chosen.
func Of(chosen func(*Call) bool, h Hook) Hook {
	return func(ctx context.Context, c *Call, next Next) error {
		if chosen(c) {
			return h(ctx, c, next)
		}
		return next(ctx)
	}
}

// Nth applies a hook to the n-th call, counted from 1; with 0 to none.
func Nth(n int, h Hook) Hook { return Each(func(i int) bool { return i == n }, h) }

// Each applies a hook to the calls whose number, from 1, is chosen.
func Each(chosen func(n int) bool, h Hook) Hook {
	var n atomic.Int64
	return Of(func(*Call) bool { return chosen(int(n.Add(1))) }, h)
}
