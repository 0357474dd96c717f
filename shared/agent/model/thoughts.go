package model

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/base/strictjson"
)

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

// WithoutThoughts returns a model content without its visible thoughts. All other parts stay byte for byte. A content
// that has no other part, or that is unreadable, stays as it is. The service needs no thoughts in a history: it checks
// the signatures of calls and text, which are in their own parts (ai.google.dev/gemini-api/docs/thought-signatures).
func WithoutThoughts(raw json.RawMessage) json.RawMessage {
	if !bytes.Contains(raw, []byte(`"thought"`)) {
		return raw
	}
	in, err := decode(raw)
	if err != nil {
		return raw
	}
	out := content{Role: in.Role}
	for i, p := range in.parts {
		if !p.Thought {
			out.Parts = append(out.Parts, in.Parts[i])
		}
	}
	if len(out.Parts) == 0 || len(out.Parts) == len(in.Parts) {
		return raw
	}
	without, err := strictjson.Marshal(out)
	if err != nil {
		return raw
	}
	return without
}
