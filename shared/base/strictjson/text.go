package strictjson

import "encoding/json"

// Text returns s as a JSON string, for results that are plain text.
func Text(s string) json.RawMessage {
	b, err := Marshal(s)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return b
}
