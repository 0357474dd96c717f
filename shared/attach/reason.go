package attach

import (
	"github.com/coder/websocket"
	"github.com/countersign-run/countersign/shared/fault"
)

// Reason says why a socket ended. Beside those that are named here there are the codes of errors.
type Reason string

// The reasons.
const (
	ReasonExited   Reason = "exited"   // the shell has ended
	ReasonNoHome   Reason = "no_home"  // a shell could not be begun, as nothing can be written to the home directory
	ReasonDeleted  Reason = "deleted"  // the terminal was closed, or its host deleted
	ReasonDisabled Reason = "disabled" // the user was shut out
	ReasonTime     Reason = "time"     // a socket's life is over; another one goes on
	ReasonSlow     Reason = "slow"     // nothing was read for too long
	ReasonInvalid  Reason = "invalid"  // a message that is none of the protocol
	reasonGone     Reason = ""         // there is nobody to tell it to
)

// reasonOf returns the reason that an error is: its code.
func reasonOf(err error) Reason { return Reason(fault.As(err).Code) }

// status returns the WebSocket's own status for the reason.
func status(why Reason) websocket.StatusCode {
	switch why {
	case ReasonExited, ReasonDeleted, ReasonTime:
		return websocket.StatusNormalClosure
	case Reason(fault.CodeInternal), Reason(fault.CodeStoreUnavailable):
		return websocket.StatusInternalError
	}
	return websocket.StatusPolicyViolation
}
