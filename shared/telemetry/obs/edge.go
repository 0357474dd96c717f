package obs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// Middleware returns the outermost handler. It adds an ID and the trace to each request, and logs one line when the
// request ends. random is for request IDs. It logs a panic with its type and its stack, but not its text, which may be
// private. It answers a panic with 500 if nothing has been written yet.
func Middleware(log *slog.Logger, random io.Reader, now func() time.Time, next http.Handler) http.Handler {
	e := edge{log, random, now}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { e.serve(next, w, r) })
}

type edge struct {
	log    *slog.Logger
	random io.Reader
	now    func() time.Time
}

// request holds the log attributes of a request. Only the goroutine that serves the request writes to it, except for
// the trace.
type request struct {
	id    string
	trace *atomic.Pointer[trace]
	route string
	user  string
	run   string
	done  *slog.Attr // httpRequest, only for the line at the end
}

type contextKey struct{}

func from(ctx context.Context) *request {
	r, _ := ctx.Value(contextKey{}).(*request)
	return r
}

// RequestID returns the ID of the request of ctx, or "". The ID is also in the answer's headers and error bodies.
func RequestID(ctx context.Context) string {
	if r := from(ctx); r != nil {
		return r.id
	}
	return ""
}

// SetRoute records the route's pattern ("GET /api/agent/runs/{runId}") for the request's line, if net/http's mux did
// not see the request itself. Call it, SetUser and SetRun from the goroutine that serves the request.
func SetRoute(ctx context.Context, pattern string) {
	if r := from(ctx); r != nil {
		r.route = pattern
	}
}

// SetUser records the calling user. The line shows the [UserHash], not the UID.
func SetUser(ctx context.Context, uid string) {
	if r := from(ctx); r != nil {
		r.user = UserHash(uid)
	}
}

// SetRun records the run that the request is about.
func SetRun(ctx context.Context, runID string) {
	if r := from(ctx); r != nil {
		r.run = runID
	}
}

// SetTrace records the span of the request's work. id and span are in hexadecimal. Later log lines of the request
// belong to this trace instead of the caller's.
func SetTrace(ctx context.Context, id, span string, sampled bool) {
	if r := from(ctx); r != nil {
		r.trace.Store(&trace{id, span, sampled})
	}
}

// UserHash returns the name of a user in logs: 16 hexadecimal digits that distinguish users without identifying them.
func UserHash(uid string) string {
	sum := sha256.Sum256([]byte("log\x00" + uid))
	return hex.EncodeToString(sum[:8])
}

func (e edge) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	start := e.now()
	about := &request{id: e.requestID(r.Header), trace: new(atomic.Pointer[trace])}
	if t := traceOf(r.Header); t.id != "" {
		about.trace.Store(&t)
	}
	r = r.WithContext(context.WithValue(r.Context(), contextKey{}, about))
	w.Header().Set("X-Request-Id", about.id)
	Strict(w.Header(), r)
	out := &response{ResponseWriter: w}
	defer func() {
		if v := recover(); v != nil {
			e.panicked(out, r, v)
		}
		e.line(r, about, out, e.now().Sub(start))
		if out.aborted {
			panic(http.ErrAbortHandler) // so that the client does not take a partial answer for a complete one
		}
	}()
	next.ServeHTTP(out, r)
}

// Strict sets Strict-Transport-Security, for two years, on an answer to a request over TLS. Cloud Run terminates TLS
// and sets X-Forwarded-Proto.
func Strict(h http.Header, r *http.Request) {
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		h.Set("Strict-Transport-Security", "max-age=63072000")
	}
}

var validRequestID = lazyregexp.New(`^[A-Za-z0-9_-]{8,64}$`)

// requestID returns the client's ID if it is valid (hostile case HD-017), and a new one otherwise.
func (e edge) requestID(h http.Header) string {
	if ids := h.Values("X-Request-Id"); len(ids) == 1 && validRequestID.MatchString(ids[0]) {
		return ids[0]
	}
	var random [16]byte
	if _, err := io.ReadFull(e.random, random[:]); err != nil {
		e.log.Error("no random bits for a request ID", "error", err)
		return "unidentified"
	}
	return hex.EncodeToString(random[:])
}

func (e edge) panicked(w *response, r *http.Request, v any) {
	if v != http.ErrAbortHandler {
		e.log.ErrorContext(r.Context(), "a handler panicked", "panic", fmt.Sprintf("%T", v), "stack", stack())
	}
	if w.status != 0 || v == http.ErrAbortHandler {
		w.aborted = true // an answer that has begun cannot be undone; the line has the status that was sent
		return
	}
	f := fault.As(nil)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(f.Status())
	_, _ = fmt.Fprintf(w, `{"ok":false,"error":{"class":%q,"code":%q,"message":%q,"requestId":%q}}`+"\n", f.Class,
		f.Code, f.Message, RequestID(r.Context()))
}

func (e edge) line(r *http.Request, about *request, w *response, took time.Duration) {
	if w.status == 0 {
		w.status = http.StatusOK // net/http's status for a handler that wrote nothing
	}
	route := about.route
	if route == "" {
		route = r.Pattern
	}
	level := slog.LevelInfo
	if w.status >= 500 || w.aborted {
		level = slog.LevelError
	}
	// The route's pattern is logged instead of the URL: a path contains IDs, and a query may contain anything.
	done := slog.Group("httpRequest", "requestMethod", method(r.Method), "requestUrl", route, "status", w.status,
		"responseSize", strconv.FormatInt(w.bytes, 10), "latency", strconv.FormatFloat(took.Seconds(), 'f', 6, 64)+"s")
	last := *about
	last.done = &done
	attrs := []slog.Attr{}
	for _, a := range []slog.Attr{slog.String("user", about.user), slog.String("runId", about.run)} {
		if a.Value.String() != "" {
			attrs = append(attrs, a)
		}
	}
	e.log.LogAttrs(context.WithValue(r.Context(), contextKey{}, &last), level, "request", attrs...)
}

// method returns the method for the log, or "other" for an unknown one, which may have any length.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return m
	}
	return "other"
}

// response records the status and counts bytes. http.NewResponseController reaches the underlying writer through
// Unwrap.
type response struct {
	http.ResponseWriter
	status  int
	bytes   int64
	aborted bool
}

func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *response) WriteHeader(status int) {
	if w.status == 0 && status >= 200 { // lower ones are not final
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Flush implements http.Flusher.
func (w *response) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}
