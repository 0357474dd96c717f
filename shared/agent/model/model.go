// Package model is the interface for calling Gemini. The contents of a conversation are kept as the raw JSON that the
// model sent, so thought signatures and call IDs are sent back unchanged ([Contents]).
package model

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// A Request is one request to the model.
type Request struct {
	System   string            // policy and persona
	Contents []json.RawMessage // Gemini contents, verbatim, oldest first (Contents.JSON)
	Tools    []tool.Spec       // the tools that the model may call
	NoTools  bool              // function-calling mode NONE: the tools stay declared, but the answer must be text
	Settings Settings          // how the model is asked
}

// Settings are the settings of a model request. A zero field means the default of the client or the service.
type Settings struct {
	Name            string   // name of the model; empty: [Model.Name]
	Temperature     *float32 // 0 to 2; Flash models since 3.6 ignore it
	MaxOutputTokens int32    // maximum of one answer
	Calling         Calling  // empty: CallingAuto
	Allowed         []string // tools that can be called with CallingAny and CallingValidated; empty: all
	Forced          string   // the tool that the answer must call; overrides Calling and Allowed
	Thoughts        bool     // request a summary of the model's thoughts, if the model can give one
	Search          bool     // the model can use Google Search; models before Gemini 3 cannot combine it with functions
}

// Calling is the function-calling mode (ai.google.dev/gemini-api/docs/function-calling).
type Calling string

// The modes. The mode NONE is Request.NoTools.
const (
	CallingAuto      Calling = "AUTO"      // text or calls; the model decides
	CallingAny       Calling = "ANY"       // calls only
	CallingValidated Calling = "VALIDATED" // text or calls; calls fit the schemas
)

// A Call is a function call requested by the model.
type Call struct {
	ID   string          // as the model sent it; empty if it sent none
	Name string          // untrusted
	Args json.RawMessage // a JSON object, {} if the model sent none; null if it sent null, which is invalid
}

// Usage holds numbers of tokens, as the service reports them.
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

// A Source is a page that supports an answer, as the service names it.
type Source struct {
	Title string
	URL   string // untrusted; often a redirect of the service
}

// A Reply is one complete answer of the model.
type Reply struct {
	// Content is the candidate's content, verbatim: {"role":"model","parts":[…]}. It is nil if Correction is set and
	// the answer cannot be replayed.
	Content json.RawMessage
	Text    string // the visible text, without thoughts
	Calls   []Call // in the model's order
	Finish  string // STOP, or another finish reason of the service
	Usage   Usage
	Model   string   // the version of the model that answered
	Backup  string   // the fallback model that was asked; a [Model] leaves it empty
	Sources []Source // pages that support the answer, with [Settings.Search]
	// Files are the pictures and other files of the answer. Content has a placeholder for each ([TakeFiles]).
	Files []attachment.File

	// Correction is set if the answer is unusable but the model can be called again, within the run's limit, with an
	// explanation. This happens for MALFORMED_FUNCTION_CALL and UNEXPECTED_TOOL_CALL. Correction is that explanation, a
	// sentence for the model. No call of the answer is run.
	Correction string
}

// Model is the interface to a model service. Its errors are *fault.Error values of class Model with a safe message.
// They report a safety block, an empty, cut or unreadable answer, a quota, an overload, or a passed deadline.
type Model interface {
	// Generate sends one request. It retries within ctx's deadline if a retry is safe. If delta is not nil, it is
	// called with each piece of visible text as the piece arrives. Together the pieces are Reply.Text.
	Generate(ctx context.Context, req Request, delta func(text string)) (*Reply, error)
	// Name returns the name of the model.
	Name() string
}

// Wrapped is a model for types that change how a model is called. A type that embeds it keeps the model's service,
// which it would hide if it embedded a [Model].
type Wrapped struct{ Model }

// Service returns the service of the wrapped model (SignedBy).
func (w Wrapped) Service() string { return serviceOf(w.Model) }

// serviceOf returns the service of m if m has a method Service, or "".
func serviceOf(m Model) string {
	if of, ok := m.(interface{ Service() string }); ok {
		return of.Service()
	}
	return ""
}

// SignedBy returns the signer of the answer to a request with the settings: the model, and the service if m has a
// method Service. Thought signatures are valid only for their signer.
func SignedBy(m Model, s Settings) string {
	name := cmp.Or(s.Name, m.Name())
	if service := serviceOf(m); service != "" {
		return service + "/" + name
	}
	return name
}

// MaxPicture returns the limit for a picture inside a request to m, in bytes, or 0 if only the request has a limit.
// Vertex AI takes pictures of 7 MB (cloud.google.com/vertex-ai/generative-ai/docs/multimodal/image-understanding).
func MaxPicture(m Model) int {
	if serviceOf(m) == "vertex" {
		return 7_000_000
	}
	return 0
}

// Window returns the published context window of the named model in tokens (ai.google.dev/gemini-api/docs/models).
func Window(name string) int {
	switch {
	case strings.HasPrefix(name, "gemini-1.5-pro"):
		return 2 << 20
	case strings.HasPrefix(name, "gemma"):
		return 128 << 10
	}
	return 1 << 20
}
