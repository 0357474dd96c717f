package attach

import (
	"github.com/coder/websocket"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// Reason is why a socket ended: one of the constants below, or the code of an error.
type Reason string

// The reasons why a socket ends.
const (
	ReasonExited   Reason = "exited"   // the shell has ended
	ReasonNoHome   Reason = "no_home"  // no shell could start, because the home directory is not writable
	ReasonDeleted  Reason = "deleted"  // the terminal was closed, or its host deleted
	ReasonDisabled Reason = "disabled" // the user was disabled
	ReasonTime     Reason = "time"     // the socket's lifetime is over; another one continues
	ReasonSlow     Reason = "slow"     // nothing was read for too long
	ReasonInvalid  Reason = "invalid"  // a message that does not follow the protocol
	reasonGone     Reason = ""         // the other side is gone
)

// reasonOf returns the code of the error as a reason.
func reasonOf(err error) Reason { return Reason(fault.As(err).Code) }

// status returns the WebSocket status code for the reason.
func status(why Reason) websocket.StatusCode {
	switch why {
	case ReasonExited, ReasonDeleted, ReasonTime:
		return websocket.StatusNormalClosure
	case Reason(fault.CodeInternal), Reason(fault.CodeStoreUnavailable):
		return websocket.StatusInternalError
	}
	return websocket.StatusPolicyViolation
}
