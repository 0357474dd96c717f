package model

import "context"

type retryKey struct{}

// OnRetry returns a context whose requests to a model call tell each time that one is sent again.
func OnRetry(ctx context.Context, tell func()) context.Context {
	return context.WithValue(ctx, retryKey{}, tell)
}

// Retried is called by a [Model] that sends a request again.
func Retried(ctx context.Context) {
	if tell, ok := ctx.Value(retryKey{}).(func()); ok {
		tell()
	}
}
