package strictjson

import (
	"encoding/json"
)

// JSONString returns s as a JSON string, for results that are text.
func JSONString(s string) json.RawMessage {
	b, err := Marshal(s)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return b
}
