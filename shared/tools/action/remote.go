package action

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/netguard"
	"github.com/countersign-run/countersign/shared/base/outbound"
)

// remote runs calls at an endpoint.
type remote struct {
	Binding
	action string
	effect bool
	url    *url.URL
	sign   *signer
	client *http.Client
}

// execute sends the request and returns its outcome. The user and the model see the endpoint's answer only if it is a
// valid result.
func (b *remote) execute(ctx context.Context, c tool.Call) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, b.Timeout)
	defer cancel()
	var sent atomic.Bool // without a connection, nothing can have been sent
	ctx = httptrace.WithClientTrace(ctx,
		&httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	req, err := b.request(ctx, c)
	if err != nil {
		return nil, err
	}
	res, err := b.client.Do(req)
	switch {
	case errors.Is(err, netguard.ErrDenied):
		return nil, b.failure("address_denied",
			"The address of the service that does this may not be called from here. Nothing was sent.", cause(err))
	case err != nil && !sent.Load():
		return nil, tool.Transient(
			b.failure("unreachable", "The service that does this cannot be reached. Nothing was sent.", cause(err)))
	case err != nil:
		return nil, b.unclear(cause(err))
	}
	defer res.Body.Close()
	if err := b.interpret(res); err != nil {
		return nil, err
	}
	return b.result(res)
}

// request builds the HTTP request for the call. Arguments become the body or, for GET, the query; they change neither
// host nor path.
func (b *remote) request(ctx context.Context, c tool.Call) (*http.Request, error) {
	to, signed := *b.url, []byte(c.Args)
	var body io.Reader = struct{ io.Reader }{bytes.NewReader(c.Args)} // a type that net/http cannot resend
	if b.Method == http.MethodGet {
		query, err := queryOf(c.Args)
		if err != nil {
			return nil, err
		}
		to.RawQuery, signed, body = query, []byte(query), nil
	}
	req, err := http.NewRequestWithContext(ctx, b.Method, to.String(), body)
	if err != nil {
		return nil, b.failure("unreachable", "The request could not be made.", cause(err))
	}
	sum := sha256.Sum256(signed)
	identity, err := b.sign.sign(c.UID, c.ActionID, b.action, &to, hex.EncodeToString(sum[:]))
	if err != nil {
		return nil, b.failure("unsigned", "The request could not be signed.", err)
	}
	if body != nil {
		req.ContentLength = int64(len(c.Args))
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "Countersign")
	req.Header.Set("Idempotency-Key", c.ActionID)
	req.Header.Set(Header, identity)
	return req, nil
}

// queryOf encodes arguments as a query: a list as one parameter for each element, an object as JSON.
func queryOf(args json.RawMessage) (string, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(args, &values); err != nil {
		return "", err
	}
	q := url.Values{}
	for name, raw := range values {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			list = []json.RawMessage{raw}
		}
		for _, v := range list {
			text := string(v)
			var s string
			if json.Unmarshal(v, &s) == nil {
				text = s
			}
			q.Add(name, text)
		}
	}
	return q.Encode(), nil
}

// undecided lists the 4xx statuses after which the outcome is unknown: the endpoint or a proxy gave up waiting (408,
// 499), or has seen the request before (409, 425).
var undecided = []int{http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, 499}

// interpret interprets the status: 2xx means done, and 4xx means not done, except the undecided ones. Any other status
// means unknown, unless the endpoint says that it was too busy. A status in the file's refusedBy always means not done.
func (b *remote) interpret(res *http.Response) error {
	busy := res.StatusCode == http.StatusTooManyRequests ||
		res.StatusCode == http.StatusServiceUnavailable &&
			(!b.effect || res.Header.Get("Retry-After") != "")
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
		return nil
	case slices.Contains(b.RefusedBy, res.StatusCode):
		return b.refused(res.StatusCode)
	case busy:
		return tool.Transient(b.failure("busy", "The service that does this is too busy. Nothing was done.", nil).
			After(outbound.RetryAfter(res.Header, b.sign.now())))
	case res.StatusCode >= 400 && res.StatusCode < 500 && !(b.effect && slices.Contains(undecided, res.StatusCode)):
		return b.refused(res.StatusCode)
	}
	return b.unclear(fmt.Errorf("HTTP %d", res.StatusCode))
}

func (b *remote) refused(status int) error {
	return fault.New(fault.Tool, "refused", "The service refused this (HTTP %d). Nothing was done.",
		status)
}

// result reads the answer. The call is done according to the status, and an unreadable answer does not change that.
func (b *remote) result(res *http.Response) (json.RawMessage, error) {
	body, err := io.ReadAll(io.LimitReader(res.Body, b.MaxResponseBytes+1))
	kind, _, typeErr := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case err != nil:
		return nil, b.unread("it broke off", cause(err))
	case int64(len(body)) > b.MaxResponseBytes:
		return nil, b.unread(fmt.Sprintf("larger than %d bytes", b.MaxResponseBytes), nil)
	case len(body) == 0:
		return json.RawMessage(`{}`), nil
	case typeErr != nil || kind != "application/json" && !strings.HasSuffix(kind, "+json"):
		return nil, b.unread("it is not of type application/json", nil)
	case !json.Valid(body):
		return nil, b.unread("it is not JSON", nil)
	}
	return body, nil
}

// unread returns the error for an unreadable answer to a call that was done.
func (b *remote) unread(what string, why error) error {
	if b.effect {
		return tool.Unread(b.failure("unusable_answer", what, why))
	}
	return b.failure("unusable_answer", "The service that does this gave no usable answer: "+what+".", why)
}

// unclear returns the error for a request that may have run. It may also still be running: an endpoint may continue
// even after a 502.
func (b *remote) unclear(why error) error {
	if b.effect {
		return tool.Unanswered(why)
	}
	return b.failure("unusable_answer", "The service that does this gave no usable answer.", why)
}

func (b *remote) failure(code fault.Code, words string, why error) *fault.Error {
	return fault.New(fault.Tool, code, "%s", words).Because(why)
}

// cause returns the text of a client's error without its URL, because the query contains arguments. It does not wrap
// the error, because a timeout before anything was sent must not make the outcome unclear.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return errors.New(err.Error())
}

// reconcile determines the outcome of a call that was started. A request to an idempotent endpoint can be repeated.
func (b *remote) reconcile(context.Context, tool.Call) (tool.Outcome, error) {
	if b.Idempotent {
		return tool.Outcome{Verdict: tool.NotDone}, nil
	}
	return tool.Outcome{Verdict: tool.Unknown,
		Reason: "The service that does this gave no clear answer, and it cannot be asked."}, nil
}
