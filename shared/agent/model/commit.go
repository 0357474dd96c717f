package model

import "context"

type commitKey struct{}

// WithCommit returns the context of a call that begins while a commit is under way. committed is closed when the commit
// is durable; if the commit fails, the context is cancelled before that.
func WithCommit(ctx context.Context, committed <-chan struct{}) context.Context {
	return context.WithValue(ctx, commitKey{}, committed)
}

// AwaitCommit waits until the run is stored as the request shows it. It returns ctx's error if that commit fails. Only
// a [Model] that looks at stored runs needs it: nothing that a Model returns leaves before that commit.
func AwaitCommit(ctx context.Context) error {
	if committed, ok := ctx.Value(commitKey{}).(<-chan struct{}); ok {
		select {
		case <-committed:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}
