package emulate

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"

	calendarapi "google.golang.org/api/calendar/v3"
)

// maxBody limits the size of a request and of an answer.
const maxBody = 8 << 20

// routes returns a handler for the OAuth endpoints, and for the method that uses their tokens.
func (e *Emulator) routes() http.Handler {
	mux := http.NewServeMux()
	pass := func(w http.ResponseWriter, r *http.Request) { e.forward.ServeHTTP(w, r) }
	mux.HandleFunc("GET /calendar/v3/calendars/primary/events",
		e.authorised([]string{calendarapi.CalendarScope, calendarapi.CalendarEventsScope},
			e.failing("calendar.events.list", pass)))
	mux.HandleFunc("/o/oauth2/v2/", pass)
	mux.HandleFunc("POST /oauth2/token", e.failing("token", e.token))
	mux.HandleFunc("POST /oauth2/revoke", e.failing("revoke", e.revoke))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound, "notFound") })
	return mux
}

// authorised refuses an access token that is unknown or has none of the scopes.
func (e *Emulator) authorised(scopes []string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		e.mu.Lock()
		g, ok := e.grants[bearer]
		e.mu.Unlock()
		switch {
		case !ok:
			refuse(w, http.StatusUnauthorized, "authError")
		case !slices.ContainsFunc(scopes, func(s string) bool { return slices.Contains(g.scopes, s) }):
			refuse(w, http.StatusForbidden, "insufficientPermissions")
		default:
			next(w, r)
		}
	}
}

// forwarder returns a handler that forwards requests to the emulator.
func forwarder(base string) http.Handler {
	target, err := url.Parse(base)
	if err != nil {
		panic(err) // this package has built it
	}
	return &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) }}
}

// ask forwards the request to the emulator, and returns the recorded answer.
func (e *Emulator) ask(r *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	e.forward.ServeHTTP(rec, r)
	return rec
}

// replay writes a recorded answer.
func replay(w http.ResponseWriter, rec *httptest.ResponseRecorder) {
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes()) // a client that disconnected is not an error
}

// refuse answers with an error in the shape of Google's JSON APIs.
func refuse(w http.ResponseWriter, status int, reason string) {
	answer(w, status, map[string]any{"error": map[string]any{
		"code": status, "message": "refused by the test",
		"errors": []any{map[string]string{"domain": "global", "reason": reason, "message": "refused by the test"}},
	}})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // as in replay
}

// body reads the request's body and restores it for the next reader.
func body(r *http.Request) []byte {
	b, _ := io.ReadAll(io.LimitReader(r.Body, maxBody)) // a truncated body is not valid JSON, and is refused for that
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	return b
}

// cut ends the connection with a reset instead of an answer.
func cut(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // otherwise the client sees an orderly end, not a reset
	}
	_ = c.Close()
}
