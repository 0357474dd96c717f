// Package model is the first of the three doors to the world: asking Gemini. The contents of a conversation are kept as
// the raw JSON that the model sent, so that thought signatures and call ids go back untouched (Contents).
package model

import (
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/tool"
)

// Request is one question to the model.
type Request struct {
	System   string            // policy and persona
	Contents []json.RawMessage // Gemini contents, verbatim, oldest first (Contents.JSON)
	Tools    []tool.Spec       // what the model may call
	NoTools  bool              // function-calling mode NONE: the tools stay declared, and the answer must be words
}

// Call is a function call that the model asks for.
type Call struct {
	ID   string          // as the model sent it; empty when it sent none
	Name string          // untrusted
	Args json.RawMessage // a JSON object, empty where the model sent none; or the literal null that it sent, which is no arguments
}

// Usage counts tokens, as the service reports them.
type Usage struct {
	Prompt   int `json:"prompt"`
	Cached   int `json:"cached,omitempty"`
	Output   int `json:"output"`
	Thoughts int `json:"thoughts,omitempty"`
	Total    int `json:"total"`
}

// Add sums two counts.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Prompt + v.Prompt, u.Cached + v.Cached, u.Output + v.Output, u.Thoughts + v.Thoughts, u.Total + v.Total}
}

// Reply is one whole answer of the model.
type Reply struct {
	Content json.RawMessage // the candidate's content, verbatim: {"role":"model","parts":[…]}; nil when Correction is set and nothing may be replayed
	Text    string          // the visible text, without thoughts
	Calls   []Call          // in the model's order
	Finish  string          // STOP, or what the service said
	Usage   Usage
	Model   string // the version that answered

	// Correction is set when the answer cannot be used but the model can be told so and asked again, within the run's
	// bound (MALFORMED_FUNCTION_CALL, UNEXPECTED_TOOL_CALL): a sentence for the model. The answer is then not executed.
	Correction string
}

// Model is the port. The error is a *fault.Error of class Model with a safe message: safety block, empty answer, cut
// answer, unparsable answer, quota, overload, deadline.
type Model interface {
	// Generate asks once (retrying what may be retried within ctx's deadline). Where delta is not nil, it is called with
	// each piece of visible text as it arrives; the pieces' concatenation is Reply.Text.
	Generate(ctx context.Context, req Request, delta func(text string)) (*Reply, error)
	// Name is the model that is asked.
	Name() string
}
