// Package api is Countersign's HTTP API (contract §1). A handler decodes the request, calls the engine and encodes the
// answer. Errors become status codes only here. routes.go lists all routes.
//
// The packages below it serve the other protocols: ui (the AI SDK's useChat), agui (AG-UI) and mcpserver (MCP). Package
// stream streams a run's events to the encoders of ui and agui.
package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/shared/accounts/auth"
	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/api/stream"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/chat"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/planner"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// The limits of a request.
const (
	maxBody    = 1 << 20
	maxHeaders = 64 << 10
	bodyTime   = 10 * time.Second
)

// codeUnreadable means that the connection broke before the whole body was read.
const codeUnreadable fault.Code = "unreadable_body"

// API serves the functions. A field that no served function uses can be nil.
type API struct {
	Loop      *loop.Loop
	Chat      *chat.Chat
	Actions   DeclaredActions // nil if none are declared
	Records   *records.Records
	Expiry    *records.Expiry   // nil if the store deletes expired documents itself, or nothing expires
	AuditLog  AuditLog          // nil if this function does not publish the log of the audit
	Accounts  *linking.Accounts // nil if no Google OAuth client is configured
	GitHub    *linking.Accounts // nil if no GitHub App is configured
	Token     Token             // nil if no token for GitHub is configured
	Plans     *planner.Planner  // nil in a program without plans
	Hosts     Hosts             // nil in a program without hosts
	Sockets   Sockets           // nil in a program without terminals, and if terminals are disabled
	Passkeys  Credentials       // nil if no decision needs one
	Receipts  Receipts          // nil if no key for receipts is configured
	AgentDoor AgentDoor         // nil in a program without /mcp
	Webhooks  Webhooks          // nil in a program without webhooks
	Devices   Devices           // nil if Web Push is not configured
	Forward   *Forward          // nil if this program records decisions itself
	Users     *auth.Verifier
	Agents    *auth.Verifier // verifies access tokens for MCPURL; nil if no issuer is configured
	Push      *auth.PushVerifier
	BuiltIn   []string // names of the built-in tools, including those that other functions serve
	Origins   []string // exact web origins that may call the API

	// PublicURL is the URL at which browsers reach the functions.
	PublicURL string
	// MCPURL is the URL of POST /mcp for agents of other programs. Their access tokens name it as the resource.
	MCPURL string
	// Subscription is the only subscription whose pushes are accepted, as projects/P/subscriptions/S. If it is empty,
	// any push with the push account's token is accepted.
	Subscription string
	Log          *slog.Logger
	Budget       time.Duration // the most time one request may spend to advance a run or wait for one
	Concurrency  int           // maximum number of requests that this instance serves at once; 0 means 1,000
	Health       any           // the body of GET /health

	holders holders
	serving atomic.Int64 // number of user requests now being served
}

// AuditLog publishes the log of the audit's hashes (package translog).
type AuditLog interface {
	// Publish appends the entries that were committed since, and returns their number.
	Publish(ctx context.Context) (added int, err error)
}

// request is one authenticated request.
type request struct {
	*http.Request
	w     http.ResponseWriter
	uid   string
	email *string       // see loop.StartRequest.Email
	auth  decision.Auth // how the user was authenticated
	api   *API

	maxBody   int64    // limit of the body; 0 means the constant maxBody
	fileTexts []string // a body above the constant maxBody has files, and therefore one of these texts
}

// handler returns the value to send as the JSON body, or nil if it has written the response itself.
type handler func(r *request) (any, error)

// public serves a route for users, who authenticate with their token. It refuses requests while the instance is at its
// limit. The handler must read the user's document and refuse a disabled user.
func public(h handler) handler {
	return func(r *request) (any, error) {
		leave, err := r.api.admit()
		if err != nil {
			return nil, err
		}
		defer leave()
		id, err := r.api.Users.User(r.Request)
		if err != nil {
			return nil, err
		}
		r.uid, r.email, r.auth = id.UID, emailOf(id), id.Auth
		obs.SetUser(r.Context(), id.UID)
		return h(r)
	}
}

// reading is public for handlers that do not read the user's document themselves.
func reading(h handler) handler {
	return public(func(r *request) (any, error) {
		if err := r.api.Records.CheckReader(r.Context(), r.uid); err != nil {
			return nil, err
		}
		return h(r)
	})
}

// private serves a route for Google's push and scheduler, which authenticate with their service account's token.
func private(h handler) handler {
	return func(r *request) (any, error) {
		if err := r.api.Push.Check(r.Request); err != nil {
			return nil, err
		}
		return h(r)
	}
}

func (a *API) serve(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r := &request{Request: req, w: w, api: a}
		body, err := h(r)
		begun, later := body.(accepted)
		switch {
		case err != nil:
			a.fail(w, req, err)
		case later:
			reply(w, http.StatusAccepted, begun.body)
		case body != nil:
			reply(w, http.StatusOK, body)
		}
	})
}

// reply writes a JSON body.
func reply(w http.ResponseWriter, status int, body any) {
	b, err := strictjson.Marshal(body)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"ok":false}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	// lets the client finish before any work that follows the response
	w.Header().Set("Content-Length", strconv.Itoa(len(b)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // a disconnected client is not an error
}

// errorBody is an error as the contract defines it.
type errorBody struct {
	Class     fault.Class `json:"class"`
	Code      fault.Code  `json:"code"`
	Message   string      `json:"message"`
	Field     string      `json:"field,omitempty"`
	RequestID string      `json:"requestId"`
	RunID     string      `json:"runId,omitempty"`

	Moments []tool.Moment `json:"moments,omitempty"` // points in time that Message mentions

	Passkey *passkey.Options `json:"passkey,omitempty"` // for navigator.credentials.get, only on the console's pages
	Link    string           `json:"link,omitempty"`    // where the user continues
}

func (a *API) errorBody(ctx context.Context, err error) (errorBody, *fault.Error) {
	f, open := fault.As(err), &run.OpenError{}
	_ = errors.As(err, &open) // set the run that blocks this request, if err names one
	body := errorBody{Class: f.Class, Code: f.Code, Message: f.Message, Field: f.Field, RequestID: obs.RequestID(ctx),
		RunID: open.RunID, Moments: run.MomentsOf(f.Message, a.Loop.Now())}
	if needed := (*passkey.Needed)(nil); errors.As(err, &needed) {
		body.Link = needed.Link
	}
	return body, f
}

// statusLeft is the status of a request whose client left before the answer, as proxies record it. No client reads it:
// it shows in logs and metrics that the server did not fail.
const statusLeft = 499

// left reports whether err is the end of the request's own context: the client has closed its connection.
func left(requests context.Context, err error) bool {
	return errors.Is(err, context.Canceled) && errors.Is(requests.Err(), context.Canceled)
}

// warn logs an error that the answer does not report. If the client has left, it does not log a warning.
func (r *request) warn(ctx context.Context, msg string, err error, attrs ...any) {
	level := slog.LevelWarn
	if left(r.Context(), err) {
		level = slog.LevelInfo
	}
	r.api.Log.Log(ctx, level, msg, append(attrs, "error", err)...)
}

// fail sends the error as the response, and logs server errors.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	body, f := a.errorBody(r.Context(), err)
	if needed := (*passkey.Needed)(nil); errors.As(err, &needed) && r.Header.Get("Origin") == needed.Origin {
		body.Passkey = needed.Options
	}
	status := f.Status()
	switch {
	case left(r.Context(), err):
		status = statusLeft
		a.Log.InfoContext(r.Context(), "the client left before its answer", "error", err)
	case status >= 500 && f.RetryAfter > 0: // temporary
		a.Log.WarnContext(r.Context(), "request failed for now", "class", f.Class, "code", f.Code, "error", err)
	case status >= 500:
		a.Log.ErrorContext(r.Context(), "request failed", "class", f.Class, "code", f.Code, "error", err)
	}
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.RetryAfter.Seconds()))))
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", a.challenge(r))
	}
	reply(w, status, struct {
		OK    bool      `json:"ok"`
		Error errorBody `json:"error"`
	}{false, body})
}

// decode strictly decodes the JSON body into v, and returns the hash of the body's bytes. Half an emoji in people's
// words becomes U+FFFD.
func (r *request) decode(v any) (bodyHash string, err error) {
	data, err := r.json()
	if err != nil {
		return "", err
	}
	if err := strictjson.Decode(stream.Mend(data), v); err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// json reads a body of content type application/json.
func (r *request) json() ([]byte, error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	if err != nil || kind != "application/json" || charset != "" && charset != "utf-8" {
		return nil, fault.New(fault.Validation, fault.CodeMediaType, "The body must be application/json in UTF-8.")
	}
	return r.body()
}

// body reads the body. It enforces the limits of size and time.
func (r *request) body() (data []byte, err error) {
	err = r.receive(func(limit int64) error {
		data, err = r.read(limit)
		return err
	})
	return data, err
}

// receive calls read, which reads the body up to the limit, within the time for a body of this size. A [fault.Error]
// of read is returned as it is.
func (r *request) receive(read func(limit int64) error) error {
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return fault.New(fault.Validation, fault.CodeMediaType, "A compressed body is not accepted.")
	}
	limit := cmp.Or(r.maxBody, maxBody)
	within := bodyTime * time.Duration(1+max(0, min(r.ContentLength, limit)-1)/maxBody) // for each MiB
	rc := http.NewResponseController(r.w)
	deadline := rc.SetReadDeadline(time.Now().Add(within)) == nil
	err := read(limit)
	var tooLarge *http.MaxBytesError
	var wrong *fault.Error
	switch {
	case errors.As(err, &tooLarge):
		return fault.New(fault.Validation, fault.CodeTooLarge, "The body is larger than %d bytes.",
			tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		r.w.Header().Set("Connection", "close")
		return fault.New(fault.Validation, fault.CodeTimeout, "The body did not arrive within %d seconds.",
			int(within.Seconds()))
	case errors.As(err, &wrong):
		return wrong
	case err != nil:
		return fault.New(fault.Validation, codeUnreadable, "The body could not be read.").Because(err)
	}
	if deadline {
		return rc.SetReadDeadline(time.Time{})
	}
	return nil
}

// read reads the body. Beyond maxBody it reads on only if the body has files by then, because nothing else is as large.
func (r *request) read(limit int64) ([]byte, error) {
	body := http.MaxBytesReader(r.w, r.Body, limit)
	if limit <= maxBody {
		return io.ReadAll(body)
	}
	data, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	if err != nil || len(data) <= maxBody {
		return data, err
	}
	if !slices.ContainsFunc(r.fileTexts, func(text string) bool { return bytes.Contains(data, []byte(text)) }) {
		r.w.Header().Set("Connection", "close") // the rest is not read
		return nil, &http.MaxBytesError{Limit: maxBody}
	}
	rest, err := io.ReadAll(body)
	return append(data, rest...), err
}

// id returns a path parameter that must be a valid ID.
func (r *request) id(name string) (string, error) {
	id := r.PathValue(name)
	if !run.ValidID(id) {
		return "", fault.Invalid(name, "invalid ID")
	}
	return id, nil
}

// number returns a query parameter from least to most, or def if it is absent.
func (r *request) number(name string, def, least, most int64) (int64, error) {
	s := r.URL.Query().Get(name)
	if s == "" {
		return def, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < least || n > most {
		return 0, fault.Invalid(name, "must be a number from %d to %d", least, most)
	}
	return n, nil
}

// working returns a context for work that continues after the client disconnects, for at most the function's time
// budget.
func (r *request) working() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.Context()), r.api.Budget)
}

// guard checks every request before routing: the size of its headers, a clean path, and the browser's origin.
func (a *API) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if headerBytes(r.Header) > maxHeaders {
			a.fail(w, r, fault.New(fault.Validation, fault.CodeHeadersTooLarge, "The headers are larger than %d bytes.",
				maxHeaders))
			return
		}
		if clean := path.Clean("/" + r.URL.Path); clean != r.URL.Path {
			a.fail(w, r, errNoSuchPath())
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			if !slices.Contains(a.Origins, origin) {
				a.fail(w, r, fault.New(fault.Auth, fault.CodeOrigin, "This origin is not allowed."))
				return
			}
			allowOrigin(w.Header(), origin)
		}
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func allowOrigin(h http.Header, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Credentials", "true") // only for the consent cookie, which holds no session
	h.Set("Access-Control-Allow-Methods", "GET, POST, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, Mcp-Method, Mcp-Name, "+
		"Mcp-Protocol-Version, Prefer, X-Request-Id")
	h.Set("Access-Control-Expose-Headers", "Date, Location, Preference-Applied, Retry-After, X-Request-Id")
	h.Set("Access-Control-Max-Age", "600")
}

func headerBytes(h http.Header) int {
	n := 0
	for k, vs := range h {
		for _, v := range vs {
			n += len(k) + len(v) + 4
		}
	}
	return n
}

func errNoSuchPath() error {
	return fault.New(fault.Validation, fault.CodeNoPath, "Not found.")
}
