package model

import "context"

type retryKey struct{}

// OnRetry returns a context. tell is called each time a request with this context is sent again.
func OnRetry(ctx context.Context, retried func()) context.Context {
	return context.WithValue(ctx, retryKey{}, retried)
}

// Retried must be called by a [Model] before it sends a request again.
func Retried(ctx context.Context) {
	if retried, ok := ctx.Value(retryKey{}).(func()); ok {
		retried()
	}
}
