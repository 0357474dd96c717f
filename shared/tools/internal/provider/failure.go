package provider

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// Proof is the fact that a failed call proves.
type Proof int

// The values of Proof.
const (
	Nothing  Proof = iota // the provider may or may not have acted: a timeout, a reset, 5xx, an unreadable answer
	NotSent               // the request was never sent: no connection, no token
	Limited               // the provider says that it did not accept the call, and that a later one may succeed
	Refused               // the provider says that it did not accept the call, and never will
	Missing               // the object of the call does not exist
	Conflict              // what the call would create already exists
	NoAccess              // the user has to link the account again, or to grant a scope, or has linked another account
)

// Failure holds the known facts of a failed call.
type Failure struct {
	Proof  Proof
	Status int    // HTTP status; 0 when there was no answer
	Reason string // the provider's machine-readable reason, or the state of the connection
	After  time.Duration
	Until  time.Time    // when the provider accepts calls again; zero if it does not say
	Access *fault.Error // with NoAccess: the message for the user
}

// Lost evaluates the error of a call that the provider has not answered.
func Lost(err error) Failure {
	var access *fault.Error
	if errors.As(err, &access) && (access.Class == fault.Auth || access.Code == fault.CodeStaleView) {
		return Failure{Proof: NoAccess, Reason: string(access.Code), Access: access}
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return Failure{Proof: NotSent, Reason: "dial"}
	}
	return Failure{Proof: Nothing, Reason: connection(err)}
}

// Reauth returns the error of an account of the provider of this name whose access has ended.
func Reauth(name string) *fault.Error {
	return fault.New(fault.Auth, fault.CodeReauth, "Access to your %s account has expired. Please link it again.", name)
}

// connection describes a network error in fixed words: its own text may contain names and addresses.
func connection(err error) string {
	var slow net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return "timeout"
	case errors.Is(err, syscall.ECONNRESET):
		return "reset"
	}
	return "unreadable"
}

// Cause returns the failure for the log: the call, the status and the reason, without the provider's text.
func (f Failure) Cause(call string) error {
	return fmt.Errorf("%s: status %d, reason %q", call, f.Status, f.Reason)
}

// Fault returns the failure for the user. The sentence in what describes the failed operation; the time at which the
// provider accepts calls again follows it.
func (f Failure) Fault(call, what string) *fault.Error {
	if f.Access != nil {
		return f.Access.Because(f.Cause(call))
	}
	code := fault.Code("provider_failed")
	switch f.Proof {
	case Refused, Missing, Conflict:
		code = "provider_refused"
	case Limited:
		code = "provider_limited"
	}
	if !f.Until.IsZero() {
		what += tool.RetrySentence(f.Until)
	}
	return fault.New(fault.Tool, code, "%s", what).Because(f.Cause(call)).After(f.After)
}

// Unclear returns the error of a call that may have had its effect. The sentence in what says so.
func (f Failure) Unclear(call, what string) error {
	if f.Status == 0 {
		return tool.Unanswered(f.Fault(call, what))
	}
	return tool.Ambiguous(f.Fault(call, what))
}
