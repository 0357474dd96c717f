package tell

import (
	"encoding/json"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// maxID is the longest id that a client may have for a conversation, a message or a request, in bytes.
const maxID = 256

// CheckID checks an id of the client's own.
func CheckID(field, id string) error {
	if id == "" || len(id) > maxID {
		return fault.Invalid(field, "an id of 1 to %d bytes is needed", maxID)
	}
	return nil
}

// Decode decodes a client's request, and returns its messages as they were sent. A client sends its whole conversation
// each time, so a message that cannot be read must not refuse every later request: only the rest is decoded strictly.
func Decode(data []byte, request any) (messages []json.RawMessage, err error) {
	rest, messages, err := strictjson.Split(data, "messages")
	if err != nil {
		return nil, err
	}
	return messages, strictjson.DecodeKnown(rest, request)
}
