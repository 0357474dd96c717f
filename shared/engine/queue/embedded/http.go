package embedded

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// HTTPPush returns a Push that posts to the resume function at url as Pub/Sub does: JSON with a bearer token. It
// requests a new token for each push. Any 2xx status is an acknowledgement. A redirect is a failure, so that the token
// reaches no other host. The errors are ToolExecutionErrors; a status other than 2xx has the code push_refused.
func HTTPPush(url string, token func(context.Context) (string, error), client *http.Client) Push {
	direct := *client
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return func(ctx context.Context, envelope []byte) error {
		bearer, err := token(ctx)
		if err != nil {
			return fault.New(fault.Tool, fault.CodeInternal, "No token could be created for the push.").Because(err)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(envelope))
		if err != nil {
			return fault.New(fault.Tool, fault.CodeInternal, "The push address is not a URL.").Because(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+bearer)
		res, err := direct.Do(req)
		if err != nil {
			return fault.New(fault.Tool, fault.CodeInternal, "The resume function cannot be reached.").Because(err)
		}
		defer res.Body.Close()
		if res.StatusCode/100 != 2 {
			return fault.New(fault.Tool, "push_refused", "The resume function returned status %d.", res.StatusCode)
		}
		// Reading the rest allows the connection to be reused. Only the status matters, so an error here is ignored.
		_, _ = io.CopyN(io.Discard, res.Body, 64<<10)
		return nil
	}
}
