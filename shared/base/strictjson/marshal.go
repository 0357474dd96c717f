package strictjson

import (
	"bytes"
	"encoding/json"
)

// Marshal is like json.Marshal without HTML escaping of <, > and &. Raw JSON inside v keeps its bytes except for white
// space.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
