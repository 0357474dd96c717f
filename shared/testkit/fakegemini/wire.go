package fakegemini

import (
	"encoding/json"
)

// A Content is one turn of a conversation as it was received.
type Content struct {
	Role  string `json:"role"`
	Parts []Part `json:"parts"`
}

// Part is one part of a content. Exactly one of Text, FunctionCall, FunctionResponse and Other is set.
type Part struct {
	Text             *string           `json:"text,omitempty"`
	Thought          bool              `json:"thought,omitempty"`
	ThoughtSignature string            `json:"thoughtSignature,omitempty"`
	FunctionCall     *FunctionCall     `json:"functionCall,omitempty"`
	FunctionResponse *FunctionResponse `json:"functionResponse,omitempty"`
	InlineData       json.RawMessage   `json:"inlineData,omitempty"` // with Other
	Other            string            `json:"-"`                    // the name of another kind of data (inlineData, executableCode, …)
}

// A FunctionCall requests the call of a function.
type FunctionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// A FunctionResponse answers a FunctionCall.
type FunctionResponse struct {
	ID       string          `json:"id,omitempty"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"`
}

// A Declaration is a function that the model may call. Parameters is its schema, from either of the two fields.
type Declaration struct {
	Name        string
	Description string
	Parameters  json.RawMessage
}

// A Request is the input of a ModelFunc: one request that passed every check.
type Request struct {
	Model           string
	Stream          bool
	Vertex          bool              // it was sent to a Vertex AI path
	Instructions    string            // as sent
	System          string            // Instructions, and the server's text before the prompt (conversation.NotOfUser)
	Contents        []Content         // without the server's text
	Raw             []json.RawMessage // the contents byte for byte
	Tools           []Declaration
	NoTools         bool     // the function-calling mode is NONE
	Mode            string   // the function-calling mode as it was sent; empty: none
	Allowed         []string // the only functions that may be called, if they were named
	Search          bool     // Google Search may be used
	Temperature     *float64
	Thoughts        bool // the answer may have a summary of the thoughts
	MaxOutputTokens int
}

// User returns the last text of the user, or "".
func (r Request) User() string {
	for i := len(r.Contents) - 1; i >= 0; i-- {
		c := r.Contents[i]
		for n := len(c.Parts) - 1; n >= 0 && c.Role == "user"; n-- {
			if t := c.Parts[n].Text; t != nil {
				return *t
			}
		}
	}
	return ""
}

// Responses returns the function responses at the end of the request, or nil if it ends with text.
func (r Request) Responses() []FunctionResponse {
	var out []FunctionResponse
	for _, p := range r.Contents[len(r.Contents)-1].Parts {
		if p.FunctionResponse != nil {
			out = append(out, *p.FunctionResponse)
		}
	}
	return out
}

// Answered returns the number of the model's answers in the request's conversation.
func (r Request) Answered() (n int) {
	for _, c := range r.Contents {
		if c.Role == "model" {
			n++
		}
	}
	return n
}

// Has reports whether a function named tool is declared.
func (r Request) Has(tool string) bool {
	for _, d := range r.Tools {
		if d.Name == tool {
			return true
		}
	}
	return false
}
