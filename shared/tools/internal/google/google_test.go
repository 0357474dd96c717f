package google

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/tool"
)

func answer(code int, reason string, h http.Header) error {
	return fmt.Errorf("wrapped: %w", &googleapi.Error{Code: code, Header: h, Body: "Bearer ya29.SECRET",
		Message: "SECRET", Errors: []googleapi.ErrorItem{{Reason: reason, Message: "SECRET"}}})
}

func TestReadSaysWhatAFailureProves(t *testing.T) {
	broken := func(err error) error { return &url.Error{Op: "Post", URL: "https://SECRET", Err: err} }
	for name, c := range map[string]struct {
		err   error
		proof Proof
		class fault.Class
		code  fault.Code
	}{
		"400":       {answer(400, "invalidArgument", nil), Refused, fault.Tool, "provider_refused"},
		"401":       {answer(401, "authError", nil), NoAccess, fault.Auth, fault.CodeReauth},
		"403 scope": {answer(403, "insufficientPermissions", nil), NoAccess, fault.Auth, fault.CodeScope},
		"403 scope in a header": {
			answer(403, "", http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope"`}}), NoAccess,
			fault.Auth, fault.CodeScope},
		"403 rate":          {answer(403, "userRateLimitExceeded", nil), Limited, fault.Tool, "provider_limited"},
		"403 domain policy": {answer(403, "domainPolicy", nil), Refused, fault.Tool, "provider_refused"},
		"404":               {answer(404, "notFound", nil), Missing, fault.Tool, "provider_refused"},
		"408":               {answer(408, "", nil), Nothing, fault.Tool, "provider_failed"},
		"409":               {answer(409, "duplicate", nil), Conflict, fault.Tool, "provider_refused"},
		"429 with a reason": {answer(429, "rateLimitExceeded", nil), Limited, fault.Tool, "provider_limited"},
		"429 without one":   {answer(429, "", nil), Nothing, fault.Tool, "provider_failed"},
		"307":               {answer(307, "", nil), Nothing, fault.Tool, "provider_failed"},
		"500":               {answer(500, "backendError", nil), Nothing, fault.Tool, "provider_failed"},
		"503":               {answer(503, "", nil), Nothing, fault.Tool, "provider_failed"},
		"reset": {broken(&net.OpError{Op: "read", Err: syscall.ECONNRESET}), Nothing, fault.Tool,
			"provider_failed"},
		"end of file": {broken(io.EOF), Nothing, fault.Tool, "provider_failed"},
		"deadline":    {broken(context.DeadlineExceeded), Nothing, fault.Tool, "provider_failed"},
		"no connection": {broken(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), NotSent, fault.Tool,
			"provider_failed"},
		"refresh token revoked": {broken(&oauth2.RetrieveError{ErrorCode: "invalid_grant"}), NoAccess, fault.Auth,
			fault.CodeReauth},
		"token endpoint is down": {broken(&oauth2.RetrieveError{}), NotSent, fault.Tool, "provider_failed"},
		"client says so": {broken(fault.New(fault.Auth, fault.CodeReauth, "Link it again.")), NoAccess,
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

func TestRetryAfterIsKept(t *testing.T) {
	f := Read(answer(429, "rateLimitExceeded", http.Header{"Retry-After": {"7"}}))
	if got := f.Fault("x", "y").RetryAfter; got != 7*time.Second {
		t.Errorf("RetryAfter = %v", got)
	}
}

// linked is one account, whose client the function returns.
type linked func() (*http.Client, error)

func (linked) Reads(string) []string { return nil }

func (linked) Place(context.Context, string, []string) (tool.Place, error) { return tool.Place{}, nil }

func (l linked) Client(context.Context, string, tool.Place) (*http.Client, error) { return l() }

func TestAClientFollowsNoRedirectAndReadsNoEndlessAnswer(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			return
		}
		_, _ = w.Write(make([]byte, maxAnswer+100))
	}))
	defer srv.Close()
	c, err := Client(t.Context(), linked(func() (*http.Client, error) { return srv.Client(), nil }),
		tool.Call{UID: "u"})
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Post(srv.URL+"/away", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusTemporaryRedirect || asked != 1 {
		t.Fatalf("POST = %v after %d requests; want the redirect itself after one", res.Status, asked)
	}
	if res, err = c.Get(srv.URL + "/long"); err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err != nil || len(b) != maxAnswer {
		t.Errorf("read %d bytes, %v; want %d", len(b), err, maxAnswer)
	}
}

func TestWithoutAClientNothingHappened(t *testing.T) {
	fail := func(err error) Accounts {
		return linked(func() (*http.Client, error) { return nil, err })
	}
	if _, err := Client(t.Context(), fail(errors.New("store down")), tool.Call{UID: "u"}); !tool.IsTransient(err) ||
		tool.IsAmbiguous(err) {
		t.Errorf("Client = %v; want a transient error", err)
	}
	reauth := fault.New(fault.Auth, fault.CodeReauth, "Link it.")
	if _, err := Client(t.Context(), fail(reauth), tool.Call{UID: "u"}); !fault.Is(err, fault.Auth, fault.CodeReauth) ||
		tool.IsTransient(err) {
		t.Errorf("Client = %v; want the AuthError", err)
	}
}
