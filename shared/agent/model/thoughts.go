package model

import "context"

type thoughtsKey struct{}

// WithThoughtSink returns the context of a call whose model passes its visible thoughts to sink, in pieces as they
// arrive, and before the text that they lead to. Without a delta function ([Model]), nothing is passed on.
func WithThoughtSink(ctx context.Context, sink func(text string)) context.Context {
	return context.WithValue(ctx, thoughtsKey{}, sink)
}

// ThoughtSink returns the function for the thoughts of the call, or nil.
func ThoughtSink(ctx context.Context) func(text string) {
	sink, _ := ctx.Value(thoughtsKey{}).(func(string))
	return sink
}
