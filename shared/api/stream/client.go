package stream

import (
	"encoding/json"
	"slices"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// maxID is the maximum length of a client's own ID for a conversation, a message or a request, in bytes.
const maxID = 256

// CheckID validates an ID that the client chose.
func CheckID(field, id string) error {
	if id == "" || len(id) > maxID {
		return fault.Invalid(field, "must be an ID of 1 to %d bytes", maxID)
	}
	return nil
}

// Decode decodes a client's request, and returns its messages as they were sent. A client sends its whole conversation
// each time, so one unreadable message must not make every later request fail: only the rest is decoded strictly.
func Decode(data []byte, request any) (messages []json.RawMessage, err error) {
	rest, messages, err := strictjson.Split(data, "messages")
	if err != nil {
		return nil, err
	}
	return messages, strictjson.DecodeKnown(rest, request)
}

// Newest returns the index of the newest message, or -1 if there is none. Clients may add their instructions for the
// model (role system or developer) behind the user's message. The server ignores these, and so does Newest.
func Newest(messages []json.RawMessage) int {
	for at, raw := range slices.Backward(messages) {
		var m struct {
			Role string `json:"role"`
		}
		if json.Unmarshal(raw, &m) != nil || m.Role != "system" && m.Role != "developer" {
			return at
		}
	}
	return -1
}
