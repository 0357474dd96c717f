// Package model is the port for calling Gemini. The contents of a conversation are kept as the raw JSON that the model
// sent, so that thought signatures and call ids go back unchanged ([Contents]).
package model

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// A Request is one request to the model.
type Request struct {
	System   string            // policy and persona
	Contents []json.RawMessage // Gemini contents, verbatim, oldest first (Contents.JSON)
	Tools    []tool.Spec       // the tools that the model may call
	NoTools  bool              // function-calling mode NONE: the tools stay declared, and the answer must be words
	Settings Settings          // how the model is asked
}

// Settings are how a model is asked. What is zero is left to the client, or to the service.
type Settings struct {
	Name            string   // of the model; empty: [Model.Name]
	Temperature     *float32 // 0 to 2; Flash models since 3.6 take no notice of it
	MaxOutputTokens int32    // of one answer
	Calling         Calling  // empty: CallingAuto
	Allowed         []string // tools that may be called, with CallingAny and CallingValidated; empty: all
	Forced          string   // the tool that the answer must call; it takes the place of Calling and Allowed
	Thoughts        bool     // the answer is to have a summary of what the model thought, of models that give one
	Search          bool     // Google Search may be used; models before Gemini 3 take no functions beside it
}

// Calling is the function-calling mode (ai.google.dev/gemini-api/docs/function-calling).
type Calling string

// The modes. None is not among them: see Request.NoTools.
const (
	CallingAuto      Calling = "AUTO"      // words or calls, as the model sees fit
	CallingAny       Calling = "ANY"       // calls only
	CallingValidated Calling = "VALIDATED" // words or calls; calls keep to the schemas
)

// A Call is a function call requested by the model.
type Call struct {
	ID   string          // as the model sent it; empty when it sent none
	Name string          // untrusted
	Args json.RawMessage // a JSON object, {} if the model sent none; null if it sent null, which is invalid
}

// Usage is the number of tokens, as the service reports them.
type Usage struct {
	Prompt   int `json:"prompt"`
	Cached   int `json:"cached,omitempty"`
	Output   int `json:"output"`
	Thoughts int `json:"thoughts,omitempty"`
	Total    int `json:"total"`
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Prompt + v.Prompt, u.Cached + v.Cached, u.Output + v.Output, u.Thoughts + v.Thoughts,
		u.Total + v.Total}
}

// A Source is a page that an answer rests on, as the service names it.
type Source struct {
	Title string
	URL   string // untrusted, and often a redirect of the service's own
}

// A Reply is one whole answer of the model.
type Reply struct {
	// the candidate's content, verbatim: {"role":"model","parts":[…]}; nil when Correction is set and nothing may be
	// replayed
	Content json.RawMessage
	Text    string // the visible text, without thoughts
	Calls   []Call // in the model's order
	Finish  string // STOP, or the service's other finish reason
	Usage   Usage
	Model   string   // the version of the model that answered
	Sources []Source // pages that the answer rests on, where the model may search ([Settings.Search])

	// Correction is set when the answer cannot be used but the model can be called again, within the run's bound, with
	// an explanation (MALFORMED_FUNCTION_CALL, UNEXPECTED_TOOL_CALL). It is a sentence for the model. No call of such
	// an answer is executed.
	Correction string
}

// Model is the interface to a model service. Errors are *fault.Error values of class Model with a safe message: safety
// block, empty answer, cut answer, unparsable answer, quota, overload, deadline.
type Model interface {
	// Generate sends one request, and retries what may be retried within ctx's deadline. If delta is not nil, it is
	// called with each piece of visible text as it arrives; the concatenation of the pieces is Reply.Text.
	Generate(ctx context.Context, req Request, delta func(text string)) (*Reply, error)
	// Name returns the name of the model.
	Name() string
}

// SignedBy names who signs the answer to a request with the settings: the model, and the service that serves it where
// the Model tells (a method Service). Thought signatures of one are not valid for another.
func SignedBy(m Model, s Settings) string {
	name := cmp.Or(s.Name, m.Name())
	if of, ok := m.(interface{ Service() string }); ok && of.Service() != "" {
		return of.Service() + "/" + name
	}
	return name
}

// Window returns the number of tokens that the model with the name reads at most, as it is published
// (ai.google.dev/gemini-api/docs/models).
func Window(name string) int {
	switch {
	case strings.HasPrefix(name, "gemini-1.5-pro"):
		return 2 << 20
	case strings.HasPrefix(name, "gemma"):
		return 128 << 10
	}
	return 1 << 20
}
