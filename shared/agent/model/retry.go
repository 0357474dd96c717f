package model

import "context"

type retryKey struct{}

// OnRetry returns a context. Each time that a request with it is sent again, tell is called.
func OnRetry(ctx context.Context, retried func()) context.Context {
	return context.WithValue(ctx, retryKey{}, retried)
}

// Retried must be called by a [Model] before it sends a request again.
func Retried(ctx context.Context) {
	if retried, ok := ctx.Value(retryKey{}).(func()); ok {
		retried()
	}
}
