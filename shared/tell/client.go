package tell

import "github.com/countersign-run/countersign/shared/fault"

// maxID is the longest id that a client may have for a conversation, a message or a request, in bytes.
const maxID = 256

// CheckID checks an id of the client's own.
func CheckID(field, id string) error {
	if id == "" || len(id) > maxID {
		return fault.Invalid(field, "an id of 1 to %d bytes is needed", maxID)
	}
	return nil
}
