package fakegemini

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// Generation is a generation of models. It determines the rules for signatures and IDs.
type Generation int

// The generations of models that the fake can imitate.
const (
	Gemini3 Generation = iota // sends ids and signatures, and requires them back
	Gemini2                   // neither
)

// Check decodes contents as strictly as the service does, or more strictly. It returns the message that a 400 would
// carry.
//
// The rules: contents must not be empty. The roles are user and model, and the first and the last content are the
// user's. No content is without parts, and no part without data. A turn of N calls follows text of the user or
// responses. The next content answers it with exactly N responses, with the same names and IDs in the same order. Each
// response has a call. The first call of each step since the user's last text has its signature
// (ai.google.dev/gemini-api/docs/thought-signatures). Roles alternate, except for text of the user after responses.
// Names follow the published grammar. Recorded conversations show that the service accepts calls of functions that are
// not declared, and an empty text of the model, so Check accepts them too.
func Check(raw []json.RawMessage, gen Generation) ([]Content, error) { return CheckBy("", raw, gen) }

// CheckBy is like [Check] for one model of one service. It refuses signatures of any other model or service, also in
// completed turns.
func CheckBy(signer string, raw []json.RawMessage, gen Generation) ([]Content, error) {
	if len(raw) == 0 {
		return nil, invalid("* GenerateContentRequest.contents: contents is not specified")
	}
	contents := make([]Content, len(raw))
	for i, r := range raw {
		c, err := decodeContent(i, r)
		if err != nil {
			return nil, err
		}
		contents[i] = c
	}
	if contents[0].Role != "user" {
		return nil, invalid("contents[0]: Please ensure that the conversation starts with a user role.")
	}
	if contents[len(contents)-1].Role != "user" {
		return nil, invalid("contents[%d]: Please ensure that requests end with a user role or a function "+
			"response turn.", len(contents)-1)
	}
	if err := checkTurns(contents); err != nil {
		return nil, err
	}
	if err := checkSigner(signer, contents); err != nil {
		return nil, err
	}
	if gen == Gemini3 {
		return contents, checkSignatures(signer, contents)
	}
	return contents, nil
}

// checkTurns checks that calls and responses match.
func checkTurns(contents []Content) error {
	for i, c := range contents {
		calls, responses := c.calls(), c.responses()
		if len(calls) > 0 && contents[i-1].Role != "user" {
			return invalid("contents[%d]: Please ensure that function call turn comes immediately after a user turn "+
				"or after a function response turn.", i)
		}
		if i > 0 && contents[i-1].Role == c.Role && (c.Role == "model" || len(contents[i-1].responses()) == 0) {
			return invalid("contents[%d]: Please ensure that multiturn requests alternate between user and model.", i)
		}
		var asked []*FunctionCall
		if i > 0 {
			asked = contents[i-1].calls()
		}
		switch {
		case len(asked) == 0 && len(responses) > 0:
			return invalid("contents[%d]: Please ensure that function response turn comes immediately after a "+
				"function call turn.", i)
		case len(asked) != len(responses):
			return invalid("contents[%d]: Please ensure that the number of function response parts is equal to the "+
				"number of function call parts of the function call turn.", i)
		case len(responses) > 0 && len(responses) != len(c.Parts):
			return invalid("contents[%d]: a function response turn holds function responses only.", i)
		}
		for n := range responses {
			if asked[n].Name != responses[n].Name || asked[n].ID != responses[n].ID {
				return invalid("contents[%d].parts[%d].function_response: it answers %q (id %q), but the call there "+
					"was %q (id %q).",
					i, n, responses[n].Name, responses[n].ID, asked[n].Name, asked[n].ID)
			}
		}
	}
	return nil
}

// checkSigner checks that each of the fake's signatures was made by the signer and covers the content that carries it.
func checkSigner(signer string, contents []Content) error {
	for i, c := range contents {
		for n, p := range c.Parts {
			b, err := base64.StdEncoding.DecodeString(p.ThoughtSignature)
			if err == nil && strings.HasPrefix(string(b), signed) && p.ThoughtSignature != signOf(signer, c.Parts, n) {
				return invalid("contents[%d].parts[%d]: Thought signature is not valid.", i, n)
			}
		}
	}
	return nil
}

// checkSignatures checks the signatures of the current turn: everything after the user's last text.
func checkSignatures(signer string, contents []Content) error {
	start := 0
	for i, c := range contents {
		if c.Role == "user" && len(c.responses()) == 0 {
			start = i
		}
	}
	for i := start + 1; i < len(contents); i++ {
		for n, p := range contents[i].Parts {
			if contents[i].Role == "model" && p.InlineData != nil && p.ThoughtSignature == "" {
				return invalid("Image part is missing a thought_signature in content position %d, part position %d.",
					i+1, n+1)
			}
		}
		first := slices.IndexFunc(contents[i].Parts, func(p Part) bool { return p.FunctionCall != nil })
		if first < 0 {
			continue
		}
		p := contents[i].Parts[first]
		if p.ThoughtSignature == "" {
			return invalid("Function call is missing a thought_signature in functionCall parts. This is required for "+
				"tools to work correctly. Additional data, function call `default_api:%s` , position %d.",
				p.FunctionCall.Name, i+1)
		}
		if p.ThoughtSignature != signOf(signer, contents[i].Parts, first) {
			return invalid("contents[%d].parts[%d]: Thought signature is not valid.", i, first)
		}
	}
	return nil
}

func (c Content) calls() (out []*FunctionCall) {
	for _, p := range c.Parts {
		if p.FunctionCall != nil {
			out = append(out, p.FunctionCall)
		}
	}
	return out
}

func (c Content) responses() (out []*FunctionResponse) {
	for _, p := range c.Parts {
		if p.FunctionResponse != nil {
			out = append(out, p.FunctionResponse)
		}
	}
	return out
}

func decodeContent(i int, raw json.RawMessage) (Content, error) {
	at := fmt.Sprintf("contents[%d]", i)
	var c struct {
		Role  string                       `json:"role"`
		Parts []map[string]json.RawMessage `json:"parts"`
	}
	if err := strict(raw, &c); err != nil {
		return Content{}, invalid("Invalid JSON payload received at %s: %v", at, err)
	}
	if c.Role != "user" && c.Role != "model" {
		return Content{}, invalid("%s: Please use a valid role: user, model.", at)
	}
	if len(c.Parts) == 0 {
		return Content{}, invalid("* GenerateContentRequest.%s.parts: contents.parts must not be empty.", at)
	}
	out := Content{Role: c.Role}
	for n, fields := range c.Parts {
		p, err := decodePart(fmt.Sprintf("%s.parts[%d]", at, n), c.Role, fields)
		if err != nil {
			return Content{}, err
		}
		out.Parts = append(out.Parts, p)
	}
	return out, nil
}

// otherData lists the kinds of part data that this fake accepts without checks.
var otherData = []string{"inlineData", "fileData", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"}

// partMeta lists the fields allowed next to the data of a part.
var partMeta = []string{"thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"}

func decodePart(at, role string, fields map[string]json.RawMessage) (Part, error) {
	var p Part
	var kinds []string
	for name := range fields {
		switch {
		case name == "text" || name == "functionCall" || name == "functionResponse":
			kinds = append(kinds, name)
		case slices.Contains(otherData, name):
			kinds, p.Other = append(kinds, name), name
		case !slices.Contains(partMeta, name):
			return p, invalid("Invalid JSON payload received. Unknown name %q at '%s': Cannot find field.", name, at)
		}
	}
	if len(kinds) != 1 {
		return p, invalid("* GenerateContentRequest.%s.data: required oneof field 'data' must have one "+
			"initialized field", at)
	}
	if err := json.Unmarshal(encode(fields), &p); err != nil {
		return p, invalid("Invalid value at '%s': %v", at, err)
	}
	if _, err := base64.RawStdEncoding.DecodeString(plainBase64.Replace(p.ThoughtSignature)); err != nil {
		return p, invalid("Invalid value at '%s.thought_signature' (TYPE_BYTES), Base64 decoding failed", at)
	}
	return p, p.check(at, role)
}

// plainBase64 maps the two alphabets that the service accepts to one.
var plainBase64 = strings.NewReplacer("-", "+", "_", "/", "=", "")

func (p Part) check(at, role string) error {
	switch {
	case p.Text == nil && p.FunctionCall == nil && p.FunctionResponse == nil && p.Other == "":
		return invalid("* GenerateContentRequest.%s.data: required oneof field 'data' must have one initialized field",
			at)
	case p.Text != nil && *p.Text == "" && role == "user":
		return invalid("%s: the text is empty.", at)
	case p.FunctionCall != nil:
		return p.checkCall(at, role)
	case p.FunctionResponse != nil && role != "user":
		return invalid("%s: a function response is in a turn of the %s.", at, role)
	case p.FunctionResponse != nil && p.FunctionResponse.Name == "":
		return invalid("* GenerateContentRequest.%s.function_response.name: Name cannot be empty.", at)
	case p.FunctionResponse != nil && !isObject(p.FunctionResponse.Response, false):
		return invalid("Invalid value at '%s.function_response.response' (type.googleapis.com/google.protobuf.Struct)",
			at)
	}
	return nil
}

func (p Part) checkCall(at, role string) error {
	switch call := p.FunctionCall; {
	case role != "model":
		return invalid("%s: a function call is in a turn of the %s.", at, role)
	case call.Name == "":
		return invalid("* GenerateContentRequest.%s.function_call.name: Name cannot be empty.", at)
	case !callName.MatchString(call.Name):
		return invalid("* GenerateContentRequest.%s.function_call.name: [FIELD_INVALID] Invalid function name.", at)
	case !isObject(call.Args, true):
		return invalid("Invalid value at '%s.function_call.args' (type.googleapis.com/google.protobuf.Struct)", at)
	}
	return nil
}

// callName matches the names in a conversation (ai.google.dev/api/caching#FunctionCall), including all names that
// declarations allow.
var callName = lazyregexp.New(`^[a-zA-Z0-9_.:-]{1,128}$`)

func isObject(raw json.RawMessage, optional bool) bool {
	s := strings.TrimSpace(string(raw))
	return strings.HasPrefix(s, "{") || optional && (s == "" || s == "null")
}

// invalidArgument is the message of a 400.
type invalidArgument string

func (e invalidArgument) Error() string { return string(e) }

func invalid(format string, args ...any) error { return invalidArgument(fmt.Sprintf(format, args...)) }
