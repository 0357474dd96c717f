package model

import (
	"encoding/json"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// The limits of one model answer.
const (
	MaxContent = 512 << 10 // bytes of content
	MaxCalls   = 16        // number of calls that are handled; the others are not run
)

// Parsed is a decoded model content.
type Parsed struct {
	Text  string // the visible text, without thoughts
	Calls []Call
}

// part holds the fields of a part that this package reads. All other fields stay in the raw JSON.
type part struct {
	Text             *string      `json:"text"`
	Thought          bool         `json:"thought"`
	FunctionCall     *rawCall     `json:"functionCall"`
	FunctionResponse *rawResponse `json:"functionResponse"`
	FileData         *FileData    `json:"fileData"`
	InlineData       *inlineData  `json:"inlineData"`
}

type inlineData struct {
	Data string `json:"data"`
}

type rawCall struct {
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Args         json.RawMessage `json:"args"`
	PartialArgs  json.RawMessage `json:"partialArgs"`
	WillContinue bool            `json:"willContinue"`
}

type rawResponse struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"`
}

type content struct {
	Role  string            `json:"role"`
	Parts []json.RawMessage `json:"parts"`

	parts []part // decoded from Parts
}

// Parse reads a model content, {"role":"model","parts":[…]}. Its errors are of class Model. The code is CodeTooLarge if
// a limit is exceeded, and otherwise CodeUnreadable. Unreadable are other JSON, calls with invalid function names
// (which the service refuses when they are sent back), and arguments that are not an object.
func Parse(raw json.RawMessage) (*Parsed, error) {
	if len(raw) > MaxContent {
		return nil, errTooLong()
	}
	c, err := decode(raw)
	if err != nil {
		return nil, err
	}
	return c.parsed()
}

func errTooLong() error {
	return fault.New(fault.Model, CodeTooLarge, "The model's answer is larger than %d KiB.", MaxContent>>10)
}

// parsed returns the decoded content.
func (c *content) parsed() (*Parsed, error) {
	if c.Role != "model" {
		return nil, unreadable(nil)
	}
	p := &Parsed{}
	var text strings.Builder
	for _, part := range c.parts {
		if part.FunctionResponse != nil {
			return nil, unreadable(nil)
		}
		if part.FunctionCall != nil {
			call, err := part.FunctionCall.call()
			if err != nil {
				return nil, err
			}
			p.Calls = append(p.Calls, call)
		}
		if part.Text != nil && !part.Thought {
			text.WriteString(*part.Text)
		}
	}
	p.Text = text.String()
	return p, nil
}

// Words returns the text of a content without thoughts, or "" if the content is unreadable.
func Words(raw json.RawMessage) string { return texts(raw, false) }

// Thoughts returns the visible thoughts in a content, or "" if there are none.
func Thoughts(raw json.RawMessage) string { return texts(raw, true) }

func texts(raw json.RawMessage, thoughts bool) string {
	c, err := decode(raw)
	if err != nil {
		return ""
	}
	var text strings.Builder
	for _, p := range c.parts {
		if p.Text != nil && p.Thought == thoughts {
			text.WriteString(*p.Text)
		}
	}
	return text.String()
}

// isPrompt reports whether all parts are text or files.
func (c *content) isPrompt() bool {
	return !slices.ContainsFunc(c.parts, func(p part) bool { return p.Text == nil && p.FileData == nil })
}

func decode(raw json.RawMessage) (*content, error) {
	if err := strictjson.Check(raw); err != nil {
		return nil, unreadable(err)
	}
	var c content
	if err := jsonv2.Unmarshal(raw, &c); err != nil {
		return nil, unreadable(err)
	}
	if len(c.Parts) == 0 {
		return nil, fault.New(fault.Model, CodeEmpty, "The model returned an empty answer.")
	}
	for _, raw := range c.Parts {
		var p part
		err := jsonv2.Unmarshal(raw, &p)
		// A part with one of these fields holds data, so Empty need not decode it.
		said := p.Text != nil || p.FunctionCall != nil || p.FunctionResponse != nil
		if err != nil || !said && Empty(raw) {
			return nil, unreadable(err)
		}
		c.parts = append(c.parts, p)
	}
	return &c, nil
}

// Empty reports whether a part holds no data. A part with a signature and without text is not empty.
func Empty(part json.RawMessage) bool {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(part, &fields); err != nil {
		return false
	}
	for _, v := range fields {
		if string(v) != "null" {
			return false
		}
	}
	return true
}

// callName matches the names of functions (ai.google.dev/api/caching#FunctionCall).
var callName = lazyregexp.New(`^[a-zA-Z0-9_.:-]{1,128}$`)

func (r rawCall) call() (Call, error) {
	if !callName.MatchString(r.Name) || r.PartialArgs != nil || r.WillContinue {
		return Call{}, unreadable(nil)
	}
	args := r.Args
	if args == nil { // Gemini omits the arguments if a tool has no parameters
		args = json.RawMessage("{}")
	}
	if s := string(args); s != "null" && !strings.HasPrefix(s, "{") {
		return Call{}, unreadable(nil)
	}
	return Call{ID: r.ID, Name: r.Name, Args: args}, nil
}

func unreadable(cause error) error {
	return fault.New(fault.Model, CodeUnreadable, "The model's answer could not be read.").Because(cause)
}
