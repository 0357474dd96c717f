package stream

import (
	"encoding/json"
	"reflect"
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

// spoken are the places in requests for text that people typed or that a page shows. Everything else, such as IDs,
// hashes, arguments of tools and definitions of tools, is read strictly. So is the prompt of a run or a plan: a program
// sends it, and can send it again.
var spoken = []string{"/message", "/refinementPrompt", "/comment", "/title", "/text",
	"/history/*/parts/*/text", "/pageState", "/results/*/result", // of pages and terminals
	"/context", "/state", "/forwardedProps", "/resume/*/payload/comment"} // of AG-UI clients

// Mend returns a request's body with U+FFFD in place of each lone surrogate in text of people and pages. Programs leave
// these when they cut a text in the middle of an emoji.
func Mend(body []byte) []byte { return strictjson.MendAt(body, spoken...) }

// Decode decodes a client's request, and returns its messages as they were sent. A client sends its whole conversation
// each time, so one unreadable message must not make every later request fail: only the members of the request's type
// are decoded strictly, without the messages.
func Decode(data []byte, request any) (messages []json.RawMessage, err error) {
	rest, messages, err := strictjson.Split(data, "messages")
	if err != nil {
		return nil, err
	}
	var used []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(request).Elem()) {
		used = append(used, f.Tag.Get("json"))
	}
	return messages, strictjson.DecodeKnown(Mend(strictjson.Pick(rest, used...)), request)
}

// Newest returns the index of the newest message, or -1 if there is none. Clients may add their instructions for the
// model (role system or developer) after the user's message. The server ignores these, and so does Newest.
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
