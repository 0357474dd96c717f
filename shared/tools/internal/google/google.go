// Package google evaluates failed calls of the tools for Google's services.
package google

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/outbound"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// Name is the provider's name, for its users.
const Name = "Google"

// limits are Google's reasons for 403 and 429 that mean that the call was rejected before anything was done (Gmail:
// "Resolve errors"; Calendar: "Handle API errors"; the reasons of the domain usageLimits in "Standard error messages").
var limits = map[string]bool{
	"rateLimitExceeded": true, "userRateLimitExceeded": true, "rateLimitExceededUnreg": true,
	"userRateLimitExceededUnreg": true, "dailyLimitExceeded": true, "dailyLimitExceededUnreg": true,
	"quotaExceeded": true, "limitExceeded": true, "servingLimitExceeded": true, "concurrentLimitExceeded": true,
	"variableTermLimitExceeded": true, "variableTermExpiredDailyExceeded": true, "calendarUsageLimitsExceeded": true,
}

// untilTime finds the time in Gmail's "User-rate limit exceeded.  Retry after 2026-11-28T05:01:02.345Z".
var untilTime = lazyregexp.New(`(?i)\bretry after (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))`)

// Read evaluates the error of a failed call. Of the provider's texts the result contains only the reason, and that only
// if it is one word.
func Read(err error) provider.Failure {
	var answer *googleapi.Error
	if errors.As(err, &answer) {
		return readAnswer(answer)
	}
	f := provider.Lost(err)
	var token *oauth2.RetrieveError
	if f.Proof != provider.Nothing || !errors.As(err, &token) {
		return f
	}
	if token.ErrorCode == "invalid_grant" {
		return provider.Failure{Proof: provider.NoAccess, Reason: "invalid_grant", Access: provider.Reauth(Name)}
	}
	f = provider.Failure{Proof: provider.NotSent, Reason: "token"}
	if token.Response != nil {
		f.After = outbound.RetryAfter(token.Response.Header, time.Time{})
	}
	return f
}

func readAnswer(e *googleapi.Error) provider.Failure {
	f := provider.Failure{Status: e.Code, Reason: reason(e), After: outbound.RetryAfter(e.Header, time.Time{})}
	if f.After == 0 {
		f.After = delay(e)
	}
	if f.Until = until(e); !f.Until.IsZero() && f.After == 0 {
		f.After = outbound.WaitUntil(e.Header, f.Until, time.Time{})
	}
	switch {
	case e.Code == http.StatusUnauthorized:
		f.Proof, f.Access = provider.NoAccess, provider.Reauth(Name)
	case e.Code == http.StatusForbidden && scopeMissing(e, f.Reason):
		f.Proof = provider.NoAccess
		f.Access = fault.New(fault.Auth, fault.CodeScope,
			"Your Google account has not granted what this needs. Please link it again and allow it.")
	case (e.Code == http.StatusForbidden || e.Code == http.StatusTooManyRequests) &&
		(limits[f.Reason] || !f.Until.IsZero()):
		f.Proof = provider.Limited
	case e.Code == http.StatusNotFound || e.Code == http.StatusGone:
		f.Proof = provider.Missing
	case e.Code == http.StatusConflict:
		f.Proof = provider.Conflict
	case e.Code == http.StatusRequestTimeout || e.Code == http.StatusTooManyRequests:
		f.Proof = provider.Nothing
	case e.Code >= 400 && e.Code < 500:
		f.Proof = provider.Refused
	}
	return f
}

// until returns the time that the answer names in its message or in that of an error, or zero.
func until(e *googleapi.Error) time.Time {
	messages := e.Message
	for _, one := range e.Errors {
		messages += "\n" + one.Message
	}
	found := untilTime.FindStringSubmatch(messages)
	if found == nil {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, found[1])
	if err != nil { // a date such as the 31st of February
		return time.Time{}
	}
	return at
}

func scopeMissing(e *googleapi.Error, reason string) bool {
	return reason == "insufficientPermissions" ||
		strings.Contains(e.Header.Get("Www-Authenticate"), "insufficient_scope")
}

// delay returns the wait that the details of an answer ask for (google.rpc.RetryInfo), a day at most.
func delay(e *googleapi.Error) time.Duration {
	d, err := time.ParseDuration(detail(e, "RetryInfo", "retryDelay"))
	if err != nil {
		return 0
	}
	return outbound.BoundWait(d)
}

// detail returns a field of the detail with this type of google.rpc, or "".
func detail(e *googleapi.Error, kind, field string) string {
	for _, one := range e.Details {
		info, _ := one.(map[string]any)
		if text, ok := info[field].(string); ok && info["@type"] == "type.googleapis.com/google.rpc."+kind {
			return text
		}
	}
	return ""
}

// newer maps the reasons of answers in the newer form (google.rpc.ErrorInfo) to those of the older form.
var newer = map[string]string{
	"RATE_LIMIT_EXCEEDED": "rateLimitExceeded", "RESOURCE_QUOTA_EXCEEDED": "quotaExceeded",
	"ACCESS_TOKEN_SCOPE_INSUFFICIENT": "insufficientPermissions", "SERVICE_DISABLED": "accessNotConfigured",
}

// reason returns the reason of Google's first error. An answer in the newer form (google.rpc.Status) has no errors. It
// has the reason in a detail, or only the status RESOURCE_EXHAUSTED for all limits.
func reason(e *googleapi.Error) string {
	if len(e.Errors) == 0 {
		if known := newer[detail(e, "ErrorInfo", "reason")]; known != "" {
			return known
		}
		var body struct{ Error struct{ Status string } }
		if json.Unmarshal([]byte(e.Body), &body) == nil && body.Error.Status == "RESOURCE_EXHAUSTED" {
			return "rateLimitExceeded"
		}
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
