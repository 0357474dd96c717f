package model

import (
	"encoding/json"

	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// WithText returns a model content with another visible text, which is in the first part that had text. Calls, thoughts
// and signatures stay as they are. The error is of class Model if nothing is left, or if raw is unreadable.
func WithText(raw json.RawMessage, text string) (json.RawMessage, error) {
	in, err := decode(raw)
	if err != nil {
		return nil, err
	}
	out := struct {
		Role  string            `json:"role"`
		Parts []json.RawMessage `json:"parts"`
	}{Role: in.Role}
	for i, p := range in.parts {
		if p.Text == nil || p.Thought {
			out.Parts = append(out.Parts, in.Parts[i])
			continue
		}
		part, err := retold(in.Parts[i], text)
		if err != nil {
			return nil, err
		}
		if text != "" || !Empty(part) {
			out.Parts = append(out.Parts, part)
		}
		text = ""
	}
	if text != "" { // no part had text
		part, err := retold(json.RawMessage("{}"), text)
		if err != nil {
			return nil, err
		}
		out.Parts = append([]json.RawMessage{part}, out.Parts...)
	}
	if raw, err = strictjson.Marshal(out); err != nil {
		return nil, err
	}
	_, err = decode(raw)
	return raw, err
}

// retold returns the part with another text, or without text if it is empty.
func retold(part json.RawMessage, text string) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(part, &fields); err != nil {
		return nil, unreadable(err)
	}
	delete(fields, "text")
	if text != "" {
		quoted, err := strictjson.Marshal(text)
		if err != nil {
			return nil, err
		}
		fields["text"] = quoted
	}
	return strictjson.Marshal(fields)
}
