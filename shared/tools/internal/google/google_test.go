package google

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

func answer(code int, reason string, h http.Header) error {
	return fmt.Errorf("wrapped: %w", &googleapi.Error{Code: code, Header: h, Body: "Bearer ya29.SECRET",
		Message: "SECRET", Errors: []googleapi.ErrorItem{{Reason: reason, Message: "SECRET"}}})
}

func TestReadFailures(t *testing.T) {
	broken := func(err error) error { return &url.Error{Op: "Post", URL: "https://SECRET", Err: err} }
	for name, c := range map[string]struct {
		err   error
		proof provider.Proof
		class fault.Class
		code  fault.Code
	}{
		"400":       {answer(400, "invalidArgument", nil), provider.Refused, fault.Tool, "provider_refused"},
		"401":       {answer(401, "authError", nil), provider.NoAccess, fault.Auth, fault.CodeReauth},
		"403 scope": {answer(403, "insufficientPermissions", nil), provider.NoAccess, fault.Auth, fault.CodeScope},
		"403 scope in a header": {
			answer(403, "", http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope"`}}), provider.NoAccess,
			fault.Auth, fault.CodeScope},
		"403 rate": {answer(403, "userRateLimitExceeded", nil), provider.Limited, fault.Tool,
			"provider_limited"},
		"403 domain policy": {answer(403, "domainPolicy", nil), provider.Refused, fault.Tool, "provider_refused"},
		"404":               {answer(404, "notFound", nil), provider.Missing, fault.Tool, "provider_refused"},
		"408":               {answer(408, "", nil), provider.Nothing, fault.Tool, "provider_failed"},
		"409":               {answer(409, "duplicate", nil), provider.Conflict, fault.Tool, "provider_refused"},
		"429 with a reason": {answer(429, "rateLimitExceeded", nil), provider.Limited, fault.Tool, "provider_limited"},
		"429 without one":   {answer(429, "", nil), provider.Nothing, fault.Tool, "provider_failed"},
		"307":               {answer(307, "", nil), provider.Nothing, fault.Tool, "provider_failed"},
		"500":               {answer(500, "backendError", nil), provider.Nothing, fault.Tool, "provider_failed"},
		"503":               {answer(503, "", nil), provider.Nothing, fault.Tool, "provider_failed"},
		"reset": {broken(&net.OpError{Op: "read", Err: syscall.ECONNRESET}), provider.Nothing, fault.Tool,
			"provider_failed"},
		"end of file": {broken(io.EOF), provider.Nothing, fault.Tool, "provider_failed"},
		"deadline":    {broken(context.DeadlineExceeded), provider.Nothing, fault.Tool, "provider_failed"},
		"no connection": {broken(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), provider.NotSent, fault.Tool,
			"provider_failed"},
		"refresh token revoked": {broken(&oauth2.RetrieveError{ErrorCode: "invalid_grant"}), provider.NoAccess,
			fault.Auth,
			fault.CodeReauth},
		"token endpoint is down": {broken(&oauth2.RetrieveError{}), provider.NotSent, fault.Tool, "provider_failed"},
		"client says so": {broken(fault.New(fault.Auth, fault.CodeReauth, "Link it again.")), provider.NoAccess,
			fault.Auth, fault.CodeReauth},
	} {
		t.Run(name, func(t *testing.T) {
			f := Read(c.err)
			e := f.Fault("gmail.drafts.send", "It could not be sent.")
			if f.Proof != c.proof || e.Class != c.class || e.Code != c.code {
				t.Errorf("proof %d, fault %v; want %d, %s %s", f.Proof, e, c.proof, c.class, c.code)
			}
			if s := e.Error() + f.Cause("x").Error() + fmt.Sprint(e.Err); strings.Contains(s, "SECRET") {
				t.Errorf("the provider's words are repeated: %s", s)
			}
		})
	}
}

func TestRetryAfterInErrors(t *testing.T) {
	f := Read(answer(429, "rateLimitExceeded", http.Header{"Retry-After": {"7"}}))
	if got := f.Fault("x", "y").RetryAfter; got != 7*time.Second {
		t.Errorf("RetryAfter = %v", got)
	}
}

// TestRetryAfterInMessage reads until when Google accepts no call, and counts the wait from the date of the answer.
func TestRetryAfterInMessage(t *testing.T) {
	for message, want := range map[string]string{
		"User-rate limit exceeded.  Retry after 2026-11-28T05:01:02.345Z":                     "15m2s",
		"User-rate limit exceeded.  Retry after 2026-11-28T06:01:02.345+01:00 (Mail sending)": "15m2s",
		"Quota exceeded. retry after 2026-11-28T04:00:00Z":                                    "0s",
		"Retry after 2099-01-01T00:00:00Z":                                                    "24h0m0s",
		"Retry after 2026-02-31T00:00:00Z":                                                    "",
		"Retry after tomorrow":                                                                "",
	} {
		e := &googleapi.Error{Code: 429, Message: message, Errors: []googleapi.ErrorItem{{Reason: "rateLimitExceeded"}},
			Header: http.Header{"Date": {"Sat, 28 Nov 2026 04:46:00 GMT"}}}
		f := Read(e)
		if f.Until.IsZero() != (want == "") || want != "" && f.After.Truncate(time.Second).String() != want {
			t.Errorf("%q: until %v, after %v; want %s", message, f.Until, f.After, want)
		}
		if said := f.Fault("x", "y").Message; strings.Contains(said, "2026") == (want == "") &&
			!strings.Contains(said, "2099") {
			t.Errorf("%q: the user reads %q", message, said)
		}
	}
	dated := answer(503, "", http.Header{"Retry-After": {"Sat, 28 Nov 2026 04:47:00 GMT"},
		"Date": {"Sat, 28 Nov 2026 04:46:00 GMT"}})
	if got := Read(dated).After; got != time.Minute {
		t.Errorf("Retry-After as a date: %v", got)
	}
}

// TestLimitsInTheNewerForm reads answers that have a status and details instead of a list of errors.
func TestLimitsInTheNewerForm(t *testing.T) {
	const info, quota = `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.07s"}`,
		`{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"subject":"QUOTA_EXCEEDED"}]}`
	for body, want := range map[string]provider.Failure{
		`{"error":{"code":429,"message":"SECRET","status":"RESOURCE_EXHAUSTED","details":[` + quota + `]}}`: {
			Proof: provider.Limited, Status: 429, Reason: "rateLimitExceeded"},
		`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[` + quota + `,` + info + `]}}`: {
			Proof: provider.Limited, Status: 429, Reason: "rateLimitExceeded", After: 34070 * time.Millisecond},
		`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[` +
			strings.Replace(info, "34.07s", "999999s", 1) + `]}}`: {
			Proof: provider.Limited, Status: 429, Reason: "rateLimitExceeded", After: 24 * time.Hour},
		`{"error":{"code":429,"status":"UNAVAILABLE"}}`:   {Proof: provider.Nothing, Status: 429},
		`<html>429 of a proxy: RESOURCE_EXHAUSTED</html>`: {Proof: provider.Nothing, Status: 429},
		`{"error":{"code":500,"status":"RESOURCE_EXHAUSTED"}}`: {Proof: provider.Nothing, Status: 500,
			Reason: "rateLimitExceeded"},
	} {
		code := 429
		if strings.Contains(body, "500") {
			code = 500
		}
		err := googleapi.CheckResponse(&http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(body))})
		if got := Read(err); got != want {
			t.Errorf("%s: %+v; want got %v", body, got, want)
		}
	}
}

// TestReadForms reads limits and missing scopes in the forms that Gmail's users have reported.
func TestReadForms(t *testing.T) {
	const retry, info = "Retry after 2026-11-28T05:01:02.345Z", `"@type":"type.googleapis.com/google.rpc.ErrorInfo"`
	for name, c := range map[string]struct {
		error string
		proof provider.Proof
		until bool
	}{
		"denied by its status, limited by its reason": {`"message":"` + retry + `","status":"PERMISSION_DENIED",` +
			`"errors":[{"reason":"rateLimitExceeded"}]`, provider.Limited, true},
		"the time only in an error": {`"message":"No.","errors":[{"reason":"userRateLimitExceeded","message":"` + retry +
			`"}]`, provider.Limited, true},
		"the time only":       {`"message":"` + retry + `","status":"PERMISSION_DENIED"`, provider.Limited, true},
		"a limit in a detail": {`"details":[{` + info + `,"reason":"RATE_LIMIT_EXCEEDED"}]`, provider.Limited, false},
		"a scope in a detail": {`"details":[{` + info + `,"reason":"ACCESS_TOKEN_SCOPE_INSUFFICIENT"}]`, provider.NoAccess,
			false},
		"another detail": {`"details":[{` + info + `,"reason":"USER_BLOCKED_BY_ADMIN"}]`, provider.Refused, false},
	} {
		body := io.NopCloser(strings.NewReader(`{"error":{"code":403,` + c.error + `}}`))
		f := Read(googleapi.CheckResponse(&http.Response{StatusCode: 403, Body: body}))
		if f.Proof != c.proof || f.Until.IsZero() == c.until {
			t.Errorf("%s: %+v; want proof %d, a time: %t", name, f, c.proof, c.until)
		}
	}
}
