package model

import (
	"encoding/json"

	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// encodeTexts encodes a content with a part for each text.
func encodeTexts(role Role, texts []string) json.RawMessage {
	type part struct {
		Text string `json:"text"`
	}
	parts := make([]part, len(texts))
	for i, t := range texts {
		parts[i] = part{t}
	}
	return encode(struct {
		Role  Role   `json:"role"`
		Parts []part `json:"parts"`
	}{role, parts})
}

// encodeContent encodes a content with the parts.
func encodeContent(role Role, parts []any) json.RawMessage {
	return encode(struct {
		Role  Role  `json:"role"`
		Parts []any `json:"parts"`
	}{role, parts})
}

// encode encodes a value as JSON without HTML escapes. The value must be encodable.
func encode(v any) json.RawMessage {
	b, err := strictjson.Marshal(v)
	if err != nil {
		panic("model: " + err.Error())
	}
	return b
}
