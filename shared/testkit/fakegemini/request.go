package fakegemini

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/engine/conversation"
)

// MaxBody is the largest request, in bytes (ai.google.dev: 100 MB for a request with inline data).
const MaxBody = 100_000_000

// body holds the fields of a request. Fields that the fake ignores are listed too, so that a typo is an error.
type body struct {
	Contents          []json.RawMessage `json:"contents"`
	SystemInstruction *struct {
		Role  string `json:"role"`
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
	} `json:"systemInstruction"`
	Tools      []toolGroup `json:"tools"`
	ToolConfig *struct {
		FunctionCallingConfig *struct {
			Mode                 string   `json:"mode"`
			AllowedFunctionNames []string `json:"allowedFunctionNames"`
		} `json:"functionCallingConfig"`
	} `json:"toolConfig"`
	GenerationConfig map[string]json.RawMessage `json:"generationConfig"`
	SafetySettings   json.RawMessage            `json:"safetySettings"`
	CachedContent    string                     `json:"cachedContent"`
	Labels           map[string]string          `json:"labels"`
}

type toolGroup struct {
	FunctionDeclarations []struct {
		Name                 string          `json:"name"`
		Description          string          `json:"description"`
		Parameters           json.RawMessage `json:"parameters"`
		ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema"`
		Response             json.RawMessage `json:"response"`
		ResponseJSONSchema   json.RawMessage `json:"responseJsonSchema"`
	} `json:"functionDeclarations"`
	GoogleSearch *struct{} `json:"googleSearch"`
}

// parse checks a request's body.
func parse(data []byte, signer string, gen Generation) (Request, error) {
	var b body
	var r Request
	if len(data) > MaxBody {
		return r, invalid("Request payload size exceeds the limit: %d bytes.", MaxBody)
	}
	if err := strict(data, &b); err != nil {
		return r, invalid("Invalid JSON payload received. %v", err)
	}
	contents, err := CheckBy(signer, b.Contents, gen)
	if err != nil {
		return r, err
	}
	r.Contents, r.Raw = contents, b.Contents
	if r.Tools, err = declarations(b.Tools); err != nil {
		return r, err
	}
	if b.SystemInstruction != nil {
		for _, p := range b.SystemInstruction.Parts {
			r.Instructions += p.Text
		}
		if r.System = r.Instructions; r.System == "" {
			return r, invalid("* GenerateContentRequest.system_instruction.parts: contents.parts must not be empty.")
		}
	}
	r.takePresent()
	for _, group := range b.Tools {
		r.Search = r.Search || group.GoogleSearch != nil
	}
	if r.Search && len(r.Tools) > 0 && gen == Gemini2 {
		return r, invalid("Tool use with function calling is unsupported")
	}
	if err := b.calling(&r); err != nil {
		return r, err
	}
	return r, b.generation(&r)
}

// takePresent moves the texts that the server adds before a prompt from the contents to the end of the instructions.
func (r *Request) takePresent() {
	var contents []Content
	for _, c := range r.Contents {
		var parts []Part
		for _, p := range c.Parts {
			text, added := "", false
			if p.Text != nil {
				text, added = strings.CutPrefix(*p.Text, conversation.NotOfUser)
			}
			if added && c.Role == "user" {
				r.System = strings.TrimSpace(r.System + "\n\n" + text)
			} else {
				parts = append(parts, p)
			}
		}
		if c.Parts = parts; len(parts) > 0 {
			contents = append(contents, c)
		}
	}
	r.Contents = contents
}

func (b body) calling(r *Request) error {
	if b.ToolConfig == nil || b.ToolConfig.FunctionCallingConfig == nil {
		return nil
	}
	c := b.ToolConfig.FunctionCallingConfig
	if len(r.Tools) == 0 {
		return invalid("Function calling config is set without function_declarations.")
	}
	if !slices.Contains([]string{"AUTO", "ANY", "NONE", "VALIDATED"}, c.Mode) {
		return invalid("Invalid value at 'tool_config.function_calling_config.mode' (TYPE_ENUM), %q", c.Mode)
	}
	for _, name := range c.AllowedFunctionNames {
		if !r.Has(name) || c.Mode != "ANY" && c.Mode != "VALIDATED" {
			return invalid("allowed_function_names: %q is not declared, or the mode is not ANY.", name)
		}
	}
	r.NoTools, r.Mode, r.Allowed = c.Mode == "NONE", c.Mode, c.AllowedFunctionNames
	return nil
}

func (b body) generation(r *Request) error {
	for name, into := range map[string]any{"temperature": &r.Temperature, "maxOutputTokens": &r.MaxOutputTokens} {
		if raw, ok := b.GenerationConfig[name]; ok {
			if err := json.Unmarshal(raw, into); err != nil {
				return invalid("Invalid value at 'generation_config.%s'", name)
			}
		}
	}
	if raw, ok := b.GenerationConfig["thinkingConfig"]; ok {
		var c struct{ IncludeThoughts bool }
		if json.Unmarshal(raw, &c) != nil {
			return invalid("Invalid value at 'generation_config.thinking_config'")
		}
		r.Thoughts = c.IncludeThoughts
	}
	if t := r.Temperature; t != nil && (*t < 0 || *t > 2) {
		return invalid("* GenerateContentRequest.generation_config.temperature: temperature must be in the range " +
			"[0.0, 2.0].")
	}
	return nil
}

// validName matches function names (ai.google.dev/api/caching#FunctionDeclaration).
var validName = lazyregexp.New(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)

func declarations(groups []toolGroup) ([]Declaration, error) {
	var out []Declaration
	for _, group := range groups {
		for _, d := range group.FunctionDeclarations {
			if d.Parameters != nil && d.ParametersJSONSchema != nil {
				return nil, invalid("function_declarations[%d]: parameters and parameters_json_schema are "+
					"mutually exclusive.", len(out))
			}
			schema := d.ParametersJSONSchema
			if schema == nil {
				schema = d.Parameters
			}
			out = append(out, Declaration{Name: d.Name, Description: d.Description, Parameters: schema})
		}
	}
	return out, CheckDeclarations(out)
}

// CheckDeclarations returns the message that a 400 would have for invalid declarations: a malformed or repeated name,
// a missing description, or a schema that is not plain.
func CheckDeclarations(ds []Declaration) error {
	seen := map[string]bool{}
	for i, d := range ds {
		at := fmt.Sprintf("tools[0].function_declarations[%d]", i)
		switch {
		case !validName.MatchString(d.Name):
			return invalid("* GenerateContentRequest.%s.name: Invalid function name. Must start with a letter or an "+
				"underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:) or dashes "+
				"(-), with a maximum length of 64.", at)
		case seen[d.Name]:
			return invalid("Duplicate function declaration found: %s", d.Name)
		case d.Description == "":
			return invalid("%s.description: missing field.", at)
		}
		seen[d.Name] = true
		if d.Parameters == nil {
			continue
		}
		if err := checkSchema(at+".parameters", d.Parameters, true); err != nil {
			return err
		}
	}
	return nil
}

// strict decodes one JSON value and refuses unknown fields, as the service does.
func strict(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if dec.More() {
		return fmt.Errorf("unexpected data after the JSON value")
	}
	return nil
}

// signer names the signer of the answer: the requested model and service.
func (r Request) signer() string {
	if r.Vertex {
		return "vertex/" + r.Model
	}
	return "gemini/" + r.Model
}
