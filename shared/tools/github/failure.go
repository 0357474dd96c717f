package github

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	githubapi "github.com/google/go-github/v92/github"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/outbound"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// name is the provider's name, as its users know it.
const name = "GitHub"

// read interprets the error of a failed call. The only text of GitHub's in the result is the name of the refused field.
func read(err error) provider.Failure {
	var limited *githubapi.RateLimitError
	var asked *githubapi.AbuseRateLimitError
	var moved *githubapi.RedirectionError
	var second *githubapi.TwoFactorAuthError
	var refused *githubapi.ErrorResponse
	switch {
	case errors.As(err, &limited):
		return provider.Failure{Proof: provider.Limited, Status: status(limited.Response), Reason: "rate",
			After: untilReset(limited.Response)}
	case errors.As(err, &asked):
		return provider.Failure{Proof: provider.Limited, Status: status(asked.Response), Reason: "secondary_rate",
			After: untilReset(asked.Response)}
	case errors.As(err, &moved):
		return provider.Failure{Proof: provider.Refused, Status: moved.StatusCode, Reason: "moved"}
	case errors.As(err, &second):
		return provider.Failure{Proof: provider.NoAccess, Status: http.StatusUnauthorized,
			Access: provider.Reauth(name)}
	case errors.As(err, &refused) && refused.Response != nil:
		return readAnswer(refused)
	}
	return provider.Lost(err)
}

// untilReset returns the wait that GitHub asks for, an hour at most: by Retry-After, or else until the reset of the
// limit, counted from the answer's own date.
func untilReset(r *http.Response) time.Duration {
	if r == nil {
		return 0
	}
	after := outbound.RetryAfter(r.Header, time.Time{})
	if reset, err := strconv.ParseInt(r.Header.Get(githubapi.HeaderRateReset), 10, 64); err == nil && after == 0 {
		after = outbound.WaitUntil(r.Header, time.Unix(reset, 0), time.Time{})
	}
	return min(after, time.Hour)
}

func status(r *http.Response) int {
	if r == nil {
		return 0
	}
	return r.StatusCode
}

func readAnswer(e *githubapi.ErrorResponse) provider.Failure {
	h := e.Response.Header
	f := provider.Failure{Status: e.Response.StatusCode, Reason: reason(e), After: outbound.RetryAfter(h, time.Time{})}
	switch code := f.Status; {
	case code == http.StatusUnauthorized:
		f.Proof, f.Access = provider.NoAccess, provider.Reauth(name)
	case (code == http.StatusForbidden || code == http.StatusTooManyRequests) && h.Get("Retry-After") != "":
		f.Proof = provider.Limited
	case code == http.StatusRequestTimeout || code == http.StatusTooManyRequests:
		f.Proof = provider.Nothing
	case code == http.StatusNotFound || code == http.StatusGone:
		f.Proof = provider.Missing
	case code == http.StatusConflict:
		f.Proof = provider.Conflict
	case code >= 400 && code < 500:
		f.Proof = provider.Refused
	}
	return f
}

var word = lazyregexp.New(`^[a-z_]{1,40}$`)

// reason returns the first field that GitHub refuses and the reason, if each is one word.
func reason(e *githubapi.ErrorResponse) string {
	if len(e.Errors) == 0 || !word.MatchString(e.Errors[0].Code) {
		return ""
	}
	if !word.MatchString(e.Errors[0].Field) {
		return e.Errors[0].Code
	}
	return e.Errors[0].Field + " " + e.Errors[0].Code
}

// refusal returns the error of a call that GitHub refused. The sentence in what describes the refused operation.
func refusal(f provider.Failure, call, what string) error {
	switch {
	case f.Reason == "moved":
		what += " The repository has another name by now."
	case f.Status == http.StatusForbidden:
		what += " The linked account, or this service in its name, may not do that there."
	case f.Proof == provider.Missing:
		what += " It is not there, or the linked account may not see it."
	case f.Status == http.StatusUnprocessableEntity && f.Reason != "":
		what += " It names: " + f.Reason + "."
	}
	return f.Fault(call, what)
}

// failed returns the error of a request that should have had the effect. thing names the affected object, such as "the
// issue". After an inconclusive answer, such as a 5xx, a search without a result proves nothing: GitHub may show the
// object late, or hide it from this account.
func failed(err error, call, thing string) error {
	switch f := read(err); f.Proof {
	case provider.Refused, provider.Missing, provider.Conflict, provider.NoAccess:
		return refusal(f, call, "GitHub refused "+thing+", and this try changed nothing.")
	case provider.NotSent, provider.Limited:
		return tool.Transient(f.Fault(call, "GitHub could not take "+thing+" now, and this try changed nothing."))
	default:
		return tool.Unanswered(f.Fault(call, "GitHub did not say whether it took "+thing+"."))
	}
}

// unread returns the error of an effect whose answer cannot be used. A search without a result proves nothing.
func unread(thing string) error {
	return tool.Unanswered(fault.New(fault.Tool, "provider_failed",
		"GitHub's response could not be read, so it is unknown whether GitHub accepted %s.", thing))
}

// unlooked returns the error of a failed request that changes nothing.
func unlooked(err error, call string) error {
	switch f := read(err); f.Proof {
	case provider.Refused, provider.Missing, provider.Conflict, provider.NoAccess:
		return refusal(f, call, "GitHub refused to show this, and nothing was changed.")
	default:
		return tool.Transient(f.Fault(call, "GitHub could not be asked, and nothing was changed."))
	}
}

// odd returns the error for an unusable answer to a request that changes nothing.
func odd() error {
	return tool.Transient(fault.New(fault.Tool, "provider_failed",
		"GitHub's response could not be read. Nothing was changed."))
}

// noRecord returns the error of a call that was not prepared.
func noRecord() error {
	return fault.New(fault.Policy, fault.CodeIntegrity,
		"The earlier state was not recorded, so nothing was done.")
}

// cannotAsk returns the verdict if GitHub did not answer a request about the outcome. The verdict is unknown if only
// the user can resolve it. Otherwise cannotAsk returns an error, and the caller asks again later.
func cannotAsk(err error, call, thing string) (tool.Verdict, string, error) {
	f := read(err)
	switch f.Proof {
	case provider.NoAccess, provider.Refused, provider.Missing:
		return tool.Unknown, "We can no longer look at where " + thing +
			" was to be, so we cannot tell whether it is " +
			"there. Please look at GitHub.", nil
	}
	return "", "", tool.Transient(f.Fault(call, "GitHub could not be asked what became of "+thing+"."))
}
