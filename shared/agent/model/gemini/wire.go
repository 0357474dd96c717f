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
	settings []byte            // the other members to send, as genai encoded them; nil until it has
	whole    bool              // the answer is read here alone, and genai is shown nothing of it

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

// wire puts the exchange's bytes into the request and keeps the response's.
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
	streams := res.StatusCode == http.StatusOK && strings.HasSuffix(req.URL.Path, ":streamGenerateContent")
	if streams {
		res.Body = newEventStream(res.Body)
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

// fill returns the request with the exchange's bytes as its body. If they have no settings yet, they are those of the
// body that genai made.
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

// members returns what stands between the braces of a JSON object, and never nil.
func members(object []byte) []byte {
	inner := bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimSpace(object), []byte("{")), []byte("}"))
	return append([]byte{}, inner...)
}

// request returns the body of the request: contents, instructions, settings.
func (ex *exchange) request() []byte {
	size := len(`{"contents":[],"systemInstruction":{"parts":[{"text":""}],"role":"user"},}`) + len(ex.settings) +
		len(ex.system) + len(ex.system)/16 // some of its characters are escaped
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
		b, _ = jsontext.AppendQuote(b, ex.system) // its error is about invalid UTF-8, which it has replaced
		b = append(b, `}],"role":"user"}`...)
	}
	if len(ex.settings) > 0 {
		b = append(b, ',')
		b = append(b, ex.settings...)
	}
	return append(b, '}')
}

// unseen is a body that is read to its end, and looks empty to genai, which would decode it three times.
type unseen struct{ io.ReadCloser }

func (u unseen) Read([]byte) (int, error) {
	if _, err := io.Copy(io.Discard, u.ReadCloser); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

// quiet is a stream that ends where it breaks off, or cannot be closed: genai would write that to the program's log.
// What went wrong is in the exchange.
type quiet struct{ io.ReadCloser }

func (q quiet) Read(p []byte) (int, error) {
	n, err := q.ReadCloser.Read(p)
	if err != nil {
		err = io.EOF
	}
	return n, err
}

func (q quiet) Close() error {
	_ = q.ReadCloser.Close() // all that counts was read
	return nil
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
