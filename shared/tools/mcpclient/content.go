package mcpclient

import (
	"bytes"
	"encoding/base64"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// The SDK refuses a whole result if one part of it has another form than the protocol says: a new type of content, or a
// size that is a text. The call is done by then. So the functions in this file pass on what they can read of each part,
// and the JSON of a part that they cannot read as text.

// acceptable brings the fields of a result into the forms that the SDK accepts.
func acceptable(result map[string]json.RawMessage) {
	if old := result["toolResult"]; old != nil && result["content"] == nil && result["structuredContent"] == nil {
		result["structuredContent"] = old // of the protocol's first versions
	}
	if content := result["content"]; content != nil && string(content) != "null" {
		result["content"] = contentList(content)
	}
	switch said := string(result["isError"]); said {
	case "", "null", "false", `"false"`, "0", `""`:
		delete(result, "isError")
	default: // also 1 and "true"
		result["isError"] = json.RawMessage("true")
	}
	if kindOf(result["_meta"]) != '{' {
		delete(result, "_meta")
	}
}

// contentList returns the content of a result: a list, or a part that a server sends without one.
func contentList(content json.RawMessage) json.RawMessage {
	parts := []json.RawMessage{content}
	if kindOf(content) == '[' && json.Unmarshal(content, &parts) != nil {
		return content
	}
	kept := []json.RawMessage{}
	for _, one := range parts {
		if part := contentPart(one); part != nil {
			kept = append(kept, part)
		}
	}
	return marshalled(kept)
}

// contentPart returns a part of a result's content, or nil for an empty one.
func contentPart(one json.RawMessage) json.RawMessage {
	switch kindOf(one) {
	case 'n':
		return nil
	case '"':
		return marshalled(map[string]json.RawMessage{"type": quoted([]byte("text")), "text": one})
	case '{':
	default:
		return textPart(one)
	}
	var said map[string]json.RawMessage
	if json.Unmarshal(one, &said) != nil {
		return textPart(one)
	}
	switch kind := textOf(said["type"]); {
	case (kind == "text" || kind == "") && kindOf(said["text"]) == '"', kind == "text" && said["text"] == nil:
		return marshalled(chosen(said, map[string]json.RawMessage{"type": quoted([]byte("text"))}, "text"))
	case kind == "image", kind == "audio":
		return marshalled(chosen(said, chosen(said, nil, "type"), "mimeType", "data"))
	case kind == "resource_link":
		return marshalled(chosen(said, chosen(said, nil, "type"), "name", "uri", "mimeType", "size"))
	case kind == "resource":
		var inner map[string]json.RawMessage
		_ = json.Unmarshal(said["resource"], &inner) // the description of a resource that cannot be read is empty
		return marshalled(map[string]json.RawMessage{"type": said["type"],
			"resource": marshalled(chosen(inner, nil, "uri", "mimeType", "text", "blob"))})
	default:
		return textPart(one)
	}
}

// textPart returns the JSON of a part as text.
func textPart(one json.RawMessage) json.RawMessage {
	return marshalled(map[string]json.RawMessage{"type": quoted([]byte("text")), "text": quoted(one)})
}

// chosen adds the named fields to a map if their values have the form that the SDK requires, and returns the map.
func chosen(said, kept map[string]json.RawMessage, names ...string) map[string]json.RawMessage {
	if kept == nil {
		kept = map[string]json.RawMessage{}
	}
	for _, name := range names {
		value := said[name]
		switch {
		case name == "size":
			var n int64
			if value == nil || json.Unmarshal(value, &n) != nil {
				continue
			}
		case kindOf(value) != '"':
			continue
		case name == "data" || name == "blob":
			if _, err := base64.StdEncoding.DecodeString(textOf(value)); err != nil {
				continue
			}
		}
		kept[name] = value
	}
	return kept
}

func kindOf(value json.RawMessage) jsontext.Kind {
	return jsontext.Value(bytes.TrimSpace(value)).Kind()
}

// textOf returns the text of a JSON string, or "".
func textOf(value json.RawMessage) (s string) {
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}
