// Package api is Countersign's HTTP API (contract §1): decode, call, encode. Errors become status codes here and
// nowhere else; routes.go lists all routes.
//
// Beside it, this group has the other protocols that clients speak: ui (the AI SDK's useChat) and agui (AG-UI), which
// tell brings a run's events to, and mcpserver (MCP).
package api

import (
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
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/chat"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/planner"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// The bounds of a request.
const (
	maxBody    = 1 << 20
	maxHeaders = 64 << 10
	bodyTime   = 10 * time.Second
)

// codeUnreadable means that the connection broke before the whole body was read.
const codeUnreadable fault.Code = "unreadable_body"

// API serves the functions. A field that no served function uses may be nil.
type API struct {
	Loop      *loop.Loop
	Chat      *chat.Chat
	Actions   DeclaredActions // nil where none are declared
	Records   *records.Records
	Expiry    *records.Expiry   // nil where the store deletes by itself what has expired, or nothing does
	Accounts  *linking.Accounts // nil where no Google OAuth client is configured
	GitHub    *linking.Accounts // nil where no GitHub App is configured
	Token     Token             // nil where no user acts with a token
	Plans     *planner.Planner  // nil in a program without plans
	Hosts     Hosts             // nil in a program without them
	Sockets   Sockets           // nil in a program without them, and where terminals are off
	Receipts  Receipts          // nil where no key for them is configured
	AgentDoor AgentDoor         // nil in a program without it
	Webhooks  Webhooks          // nil in a program without them
	Devices   Devices           // nil where people are not told on their devices
	Users     *auth.Verifier
	Agents    *auth.Verifier // of access tokens for MCPURL; nil where no issuer of them is configured
	Push      *auth.PushVerifier
	BuiltIn   []string // names of the tools that Countersign brings, here or elsewhere
	Origins   []string // exact web origins that may call

	// PublicURL is the URL at which browsers reach the functions.
	PublicURL string
	// MCPURL is where agents of other programs reach POST /mcp, the resource that their access tokens are for.
	MCPURL string
	// Subscription is the subscription whose pushes are accepted, as projects/P/subscriptions/S; empty for any with the
	// push account's token.
	Subscription string
	Log          *slog.Logger
	Budget       time.Duration // how long one request may take, to advance a run or to wait for one
	Concurrency  int           // how many requests this instance serves at once; 0 for 1,000
	Health       any           // the body of GET /health

	holders holders
	serving atomic.Int64 // requests of users
}

// request is one authenticated request.
type request struct {
	*http.Request
	w     http.ResponseWriter
	uid   string
	email *string // as loop.StartRequest has it
	api   *API
}

// handler returns the value of the JSON body, or nil if it has written the answer itself.
type handler func(r *request) (any, error)

// public serves a route for users, with their token, unless the instance has all that it can serve. Its handler must
// read the user's document, and refuse a disabled user.
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
		r.uid, r.email = id.UID, emailOf(id)
		obs.SetUser(r.Context(), id.UID)
		return h(r)
	}
}

// reading is like public, for routes that would not read the user's document otherwise.
func reading(h handler) handler {
	return public(func(r *request) (any, error) {
		if err := r.api.Records.CheckReader(r.Context(), r.uid); err != nil {
			return nil, err
		}
		return h(r)
	})
}

// private serves a route for Google's push and scheduler, with their service account's token.
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
	w.Header().Set("Content-Length", strconv.Itoa(len(b)+1)) // so that nobody waits for what is done after the answer
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // a client that disconnected is not an error of the server
}

// errorBody is an error in the contract's form.
type errorBody struct {
	Class     fault.Class `json:"class"`
	Code      fault.Code  `json:"code"`
	Message   string      `json:"message"`
	Field     string      `json:"field,omitempty"`
	RequestID string      `json:"requestId"`
	RunID     string      `json:"runId,omitempty"`
}

func (a *API) errorBody(ctx context.Context, err error) (errorBody, *fault.Error) {
	f, open := fault.As(err), &run.OpenError{}
	_ = errors.As(err, &open) // the run that stands in the way, if that is what err is about
	return errorBody{f.Class, f.Code, f.Message, f.Field, obs.RequestID(ctx), open.RunID}, f
}

// fail answers with the error, and logs it once.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	body, f := a.errorBody(r.Context(), err)
	status := f.Status()
	switch {
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

// decode reads the request's JSON body strictly into v, and returns the hash of its bytes.
func (r *request) decode(v any) (bodyHash string, err error) {
	data, err := r.json()
	if err != nil {
		return "", err
	}
	if err := strictjson.Decode(data, v); err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// json reads a body whose content type is JSON.
func (r *request) json() ([]byte, error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	if err != nil || kind != "application/json" || charset != "" && charset != "utf-8" {
		return nil, fault.New(fault.Validation, fault.CodeMediaType, "The body must be application/json in UTF-8.")
	}
	return r.body()
}

// body reads the body within its bounds of size and time.
func (r *request) body() ([]byte, error) {
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, fault.New(fault.Validation, fault.CodeMediaType, "A compressed body is not accepted.")
	}
	rc := http.NewResponseController(r.w)
	deadline := rc.SetReadDeadline(time.Now().Add(bodyTime)) == nil
	data, err := io.ReadAll(http.MaxBytesReader(r.w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, fault.New(fault.Validation, fault.CodeTooLarge, "The body is larger than %d bytes.", maxBody)
	case errors.Is(err, os.ErrDeadlineExceeded):
		r.w.Header().Set("Connection", "close")
		return nil, fault.New(fault.Validation, fault.CodeTimeout, "The body did not arrive within %d seconds.",
			int(bodyTime.Seconds()))
	case err != nil:
		return nil, fault.New(fault.Validation, codeUnreadable, "The body could not be read.").Because(err)
	}
	if deadline {
		if err := rc.SetReadDeadline(time.Time{}); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// id returns a path parameter that must be a valid id.
func (r *request) id(name string) (string, error) {
	id := r.PathValue(name)
	if !run.ValidID(id) {
		return "", fault.Invalid(name, "invalid ID")
	}
	return id, nil
}

// number returns a query parameter within bounds, or def if it is absent.
func (r *request) number(name string, def, least, most int64) (int64, error) {
	s := r.URL.Query().Get(name)
	if s == "" {
		return def, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < least || n > most {
		return 0, fault.Invalid(name, "a number from %d to %d is needed", least, most)
	}
	return n, nil
}

// working returns the context for work that continues after its client disconnects, for as long as the function may
// run.
func (r *request) working() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.Context()), r.api.Budget)
}

// guard checks every request first: bounds, clean paths, and the browser's origin.
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
	h.Set("Access-Control-Allow-Credentials", "true") // only for the cookie of a consent; it holds no session
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
