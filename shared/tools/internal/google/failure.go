package google

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/tool"
)

// Proof is what a failed call proves.
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

// Failure is what is known of a failed call.
type Failure struct {
	Proof  Proof
	Status int    // HTTP status; 0 when there was no answer
	Reason string // Google's machine-readable reason, or the state of the connection
	After  time.Duration
	access *fault.Error
}

// limits are Google's reasons for 403 and 429 that mean that the call was rejected before anything was done (Gmail:
// "Resolve errors"; Calendar: "Handle API errors").
var limits = map[string]bool{"rateLimitExceeded": true, "userRateLimitExceeded": true}

// Read evaluates the error of a failed call. Of the provider's texts the result contains only the reason, and that only
// if it is one word.
func Read(err error) Failure {
	var answer *googleapi.Error
	if errors.As(err, &answer) {
		return readAnswer(answer)
	}
	var access *fault.Error
	if errors.As(err, &access) && (access.Class == fault.Auth || access.Code == fault.CodeStaleView) {
		return Failure{Proof: NoAccess, Reason: string(access.Code), access: access}
	}
	var token *oauth2.RetrieveError
	if errors.As(err, &token) {
		if token.ErrorCode == "invalid_grant" {
			return Failure{Proof: NoAccess, Reason: "invalid_grant", access: reauth()}
		}
		return Failure{Proof: NotSent, Reason: "token"}
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return Failure{Proof: NotSent, Reason: "dial"}
	}
	return Failure{Proof: Nothing, Reason: connection(err)}
}

func readAnswer(e *googleapi.Error) Failure {
	f := Failure{Status: e.Code, Reason: reason(e), After: retryAfter(e.Header)}
	switch {
	case e.Code == http.StatusUnauthorized:
		f.Proof, f.access = NoAccess, reauth()
	case e.Code == http.StatusForbidden && scopeMissing(e, f.Reason):
		f.Proof = NoAccess
		f.access = fault.New(fault.Auth, fault.CodeScope,
			"Your Google account has not granted what this needs. Please link it again and allow it.")
	case (e.Code == http.StatusForbidden || e.Code == http.StatusTooManyRequests) && limits[f.Reason]:
		f.Proof = Limited
	case e.Code == http.StatusNotFound || e.Code == http.StatusGone:
		f.Proof = Missing
	case e.Code == http.StatusConflict:
		f.Proof = Conflict
	case e.Code == http.StatusRequestTimeout || e.Code == http.StatusTooManyRequests:
		f.Proof = Nothing
	case e.Code >= 400 && e.Code < 500:
		f.Proof = Refused
	}
	return f
}

func reauth() *fault.Error {
	return fault.New(fault.Auth, fault.CodeReauth, "Access to your Google account has expired. Please link it again.")
}

func scopeMissing(e *googleapi.Error, reason string) bool {
	return reason == "insufficientPermissions" ||
		strings.Contains(e.Header.Get("Www-Authenticate"), "insufficient_scope")
}

func reason(e *googleapi.Error) string {
	if len(e.Errors) == 0 {
		return ""
	}
	r := e.Errors[0].Reason
	for i := range len(r) {
		if c := r[i] | 0x20; c < 'a' || c > 'z' || i == 40 {
			return ""
		}
	}
	return r
}

func retryAfter(h http.Header) time.Duration {
	s, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || s < 0 {
		return 0
	}
	return min(time.Duration(s)*time.Second, time.Hour)
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

// Fault returns the failure for the user. what says in one sentence what could not be done.
func (f Failure) Fault(call, what string) *fault.Error {
	if f.access != nil {
		return f.access.Because(f.Cause(call))
	}
	code := fault.Code("provider_failed")
	switch f.Proof {
	case Refused, Missing, Conflict:
		code = "provider_refused"
	case Limited:
		code = "provider_limited"
	}
	return fault.New(fault.Tool, code, "%s", what).Because(f.Cause(call)).After(f.After)
}

// Unclear returns the error of a call that may have had its effect. what says so in one sentence.
func (f Failure) Unclear(call, what string) error {
	if f.Status == 0 {
		return tool.Unanswered(f.Fault(call, what))
	}
	return tool.Ambiguous(f.Fault(call, what))
}
