package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// exchange is one request and its response, as bytes.
type exchange struct {
	contents []json.RawMessage // to send; nil if the request has none

	status     int // 0: no response came
	retryAfter string
	body       bytes.Buffer // the bytes read of the response
	broken     error        // why reading it stopped before its end
}

type exchangeKey struct{}

func withExchange(ctx context.Context, ex *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, ex)
}

// errTooLarge ends a response above MaxBody.
var errTooLarge = errors.New("gemini: the response is too large")

// wire puts the exchange's contents into the request and keeps the response's bytes.
type wire struct{ base http.RoundTripper }

// RoundTrip sends one request of genai's.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	ex, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return w.base.RoundTrip(req)
	}
	out := req
	if ex.contents != nil {
		var err error
		if out, err = ex.fill(req); err != nil {
			return nil, err
		}
	}
	res, err := w.base.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	ex.status, ex.retryAfter = res.StatusCode, res.Header.Get("Retry-After")
	res.Body = &tee{res.Body, ex}
	return res, nil
}

// fill returns the request with the contents in its body.
func (ex *exchange) fill(req *http.Request) (*http.Request, error) {
	defer req.Body.Close()
	rest, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	out := req.Clone(req.Context())
	body := splice(ex.contents, rest)
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return out, nil
}

// splice puts the contents in front of the members of the JSON object that genai made.
func splice(contents []json.RawMessage, object []byte) []byte {
	members := bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimSpace(object), []byte("{")), []byte("}"))
	var b bytes.Buffer
	b.WriteString(`{"contents":[`)
	for i, c := range contents {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(c)
	}
	b.WriteByte(']')
	if len(members) > 0 {
		b.WriteByte(',')
		b.Write(members)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// tee keeps the bytes that are read, up to MaxBody.
type tee struct {
	io.ReadCloser
	ex *exchange
}

func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.ex.body.Write(p[:n])
	if t.ex.body.Len() > MaxBody {
		err = errTooLarge
	}
	if err != nil && err != io.EOF {
		t.ex.broken = err
	}
	return n, err
}
