package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// exchange is one request and its response, as bytes.
type exchange struct {
	contents []json.RawMessage // to send; nil if the request has none
	system   string            // instructions to send; may be empty
	settings []byte            // other members to send, as genai encoded them; nil until it has encoded them
	whole    bool              // only this package reads the answer; genai sees an empty one

	status int          // 0: no response arrived
	header http.Header  // of the answer
	body   bytes.Buffer // bytes of the response that were read
	broken error        // why reading stopped before the end
}

type exchangeKey struct{}

func withExchange(ctx context.Context, ex *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, ex)
}

// errTooLarge is the read error of a response larger than MaxBody.
var errTooLarge = errors.New("gemini: the response is too large")

// wire puts the exchange's bytes into the request and stores the response's bytes.
type wire struct{ base http.RoundTripper }

// RoundTrip sends one request from genai.
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
	ex.status, ex.header = res.StatusCode, res.Header
	streams := res.StatusCode == http.StatusOK && strings.HasSuffix(req.URL.Path, ":streamGenerateContent")
	if streams {
		res.Body = newEventStream(res.Body, tidy)
	}
	res.Body = &tee{res.Body, ex}
	switch {
	case ex.whole:
		res.Body = unseen{res.Body}
	case streams:
		res.Body = quiet{res.Body}
	}
	return res, nil
}

// fill returns the request with the exchange's bytes as its body. If the exchange has no settings yet, it takes them
// from the body that genai made.
func (ex *exchange) fill(req *http.Request) (*http.Request, error) {
	defer req.Body.Close()
	if ex.settings == nil {
		object, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		ex.settings = members(object)
	}
	out := req.Clone(req.Context())
	body := ex.request()
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return out, nil
}

// members returns the text between the braces of a JSON object. It is never nil.
func members(object []byte) []byte {
	inner := bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimSpace(object), []byte("{")), []byte("}"))
	return append([]byte{}, inner...)
}

// request returns the request body: contents, instructions, settings.
func (ex *exchange) request() []byte {
	size := len(`{"contents":[],"systemInstruction":{"parts":[{"text":""}],"role":"user"},}`) + len(ex.settings) +
		len(ex.system) + len(ex.system)/16 // room for escapes
	for _, c := range ex.contents {
		size += len(c) + 1
	}
	b := append(make([]byte, 0, size), `{"contents":[`...)
	for i, c := range ex.contents {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, c...)
	}
	b = append(b, ']')
	if ex.system != "" {
		b = append(b, `,"systemInstruction":{"parts":[{"text":`...)
		b, _ = jsontext.AppendQuote(b, ex.system) // the error reports invalid UTF-8, which was replaced
		b = append(b, `}],"role":"user"}`...)
	}
	if len(ex.settings) > 0 {
		b = append(b, ',')
		b = append(b, ex.settings...)
	}
	return append(b, '}')
}

// unseen reads a body to its end and looks empty to genai, which would decode it three times.
type unseen struct{ io.ReadCloser }

func (u unseen) Read([]byte) (int, error) {
	if _, err := io.Copy(io.Discard, u.ReadCloser); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

// quiet hides read and close errors from genai, which would write them to the program's log. The exchange stores the
// error.
type quiet struct{ io.ReadCloser }

func (q quiet) Read(p []byte) (int, error) {
	n, err := q.ReadCloser.Read(p)
	if err != nil {
		err = io.EOF
	}
	return n, err
}

func (q quiet) Close() error {
	_ = q.ReadCloser.Close() // all needed bytes were read
	return nil
}

// tee stores the bytes that are read, up to MaxBody.
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
