// Package web serves what browsers load: the console at "/", the page that verifies receipts at "/verify", the chat
// widget's files below "/widget/", the API's description at "/openapi.json", and the console's public configuration. It
// stores nothing, reads no user data, and has no secret. The console reads all user data from the API, with the user's
// own token.
//
// Package widget has the chat for any page, and the API client for browsers.
package web

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

//go:embed site
var embedded embed.FS

// Options configures a [Site].
type Options struct {
	Release string // of the build
	APIBase string // the API's URL without a final slash; can contain {function}; empty means the console's origin
	Local   bool   // on the local server, which has a mailbox

	Functions []string // the deployed functions; nil means all

	// Users sign in at this issuer as this public client. Without a client, LocalUsers makes the local server sign them
	// in.
	Issuer, ClientID string
	LocalUsers       bool
	Client           *http.Client     // for the issuer's endpoints; nil means one with a timeout
	Now              func() time.Time // nil: time.Now

	Widget fs.FS // the chat widget's files, including the console's API client client.js; nil for none
}

// A Site serves the console, the widget and the configuration. It is safe for concurrent use.
type Site struct {
	options Options
	issuer  *issuer // nil without a client
	console files
	foreign files // readable by pages of any origin: the widget's files and the API's description
}

// New reads the files and returns a Site.
func New(o Options) (*Site, error) {
	s := &Site{options: o}
	if o.ClientID != "" {
		s.issuer = newIssuer(o.Issuer, o.Client, o.Now)
	}
	site, err := fs.Sub(embedded, "site")
	if err != nil {
		return nil, err
	}
	if s.console, err = load(site, "/"); err != nil {
		return nil, err
	}
	s.foreign = files{}
	if o.Widget != nil {
		if s.foreign, err = load(o.Widget, "/widget/"); err != nil {
			return nil, err
		}
		for _, name := range forWidget {
			s.foreign["/widget/console/"+name] = s.console["/"+name]
		}
	}
	s.foreign["/openapi.json"], err = describe(o.APIBase)
	return s, err
}

// calls returns the deployed functions that the console calls.
func (o Options) calls() (names []string) {
	for _, name := range functions {
		if o.Functions == nil || slices.Contains(o.Functions, name) {
			names = append(names, name)
		}
	}
	return names
}

// forWidget are the console's modules for editing the widget's card. They import only each other.
var forWidget = []string{"edit.js", "fields.js", "records.js", "chips.js", "wall.js", "dom.js", "words.js", "clock.js",
	"still.js"}

// ServeHTTP answers GET and HEAD for exactly the known paths.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "no-referrer")
	serve := s.find(r.URL.Path)
	switch {
	case serve == nil:
		refuse(w, r, fault.New(fault.Validation, fault.CodeNoPath, "Not found."))
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, r, fault.New(fault.Validation, fault.CodeMethod, "This path accepts only GET and HEAD."))
	default:
		obs.SetRoute(r.Context(), r.Method+" "+r.URL.Path)
		serve(w, r)
	}
}

// find returns the handler for the path, or nil.
func (s *Site) find(path string) http.HandlerFunc {
	switch path {
	case "/config.json":
		return s.config
	case "/health":
		return s.health
	case "/verify":
		path = "/verify.html"
	}
	if f, ok := s.console[path]; ok {
		return func(w http.ResponseWriter, r *http.Request) {
			f, nonce := f.withNonce()
			s.own(w.Header(), s.policy(r, f, nonce))
			f.serve(w, r)
		}
	}
	if f, ok := s.foreign[path]; ok {
		return func(w http.ResponseWriter, r *http.Request) { foreign(w.Header()); f.serve(w, r) }
	}
	return nil
}

// policy returns the Content-Security-Policy of the console's pages. They run only the console's own files, cannot be
// framed, and cannot turn strings into markup. They can connect to the API, and to the issuer that signs in their user.
// Style elements need the nonce, which only the terminal's module reads. The only trusted-types policy is for the
// service worker (worker.js), which can load only files of the console's origin.
func (s *Site) policy(r *http.Request, f file, nonce string) string {
	switch {
	case r.URL.Path == serviceWorker:
		return "default-src 'none'; connect-src 'self'; frame-ancestors 'none'"
	case !f.page():
		return "default-src 'none'; frame-ancestors 'none'"
	}
	connect := []string{"'self'"}
	connect = append(connect, apiOrigins(s.options.APIBase, s.options.calls())...)
	if s.issuer != nil {
		// on an error, the console itself shows it
		if e, err := s.issuer.endpoints(r.Context()); err == nil && origin(e.Token) != "" {
			connect = append(connect, origin(e.Token))
		}
	}
	return "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-" + nonce +
		"'; img-src 'self'; connect-src " +
		strings.Join(connect, " ") +
		"; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
		"require-trusted-types-for 'script'; trusted-types worker"
}

// serviceWorker is the path of the service worker's script.
const serviceWorker = "/sw.js"

// own sets the headers of the console's files.
func (s *Site) own(h http.Header, policy string) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
}

// foreign sets the headers of the files that pages of any origin load.
func foreign(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
}

// attach is the function that the console opens WebSockets to.
const attach = "terminal-attach"

// functions lists the functions that the console calls.
var functions = []string{"stream", "plans", "approvals-pending", "approvals-resolve", "runs", "threads", "audit",
	"allowlist", "passkeys", "connections", "terminals", "files", attach}

// apiOrigins returns the origins of the API's functions. The origin for terminals has the scheme of WebSockets, because
// https: in a policy does not cover wss:.
func apiOrigins(base string, functions []string) (origins []string) {
	if !strings.Contains(base, "{function}") {
		if o := origin(base); o != "" {
			return []string{o, socket(o)}
		}
		return nil
	}
	for _, name := range functions {
		o := origin(strings.Replace(base, "{function}", name, 1))
		if name == attach {
			o = socket(o)
		}
		origins = append(origins, o)
	}
	return origins
}

// socket returns the origin with the scheme of a WebSocket: http becomes ws, and https becomes wss.
func socket(origin string) string { return strings.Replace(origin, "http", "ws", 1) }

func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// configuration is the body of GET /config.json. All of it is public.
type configuration struct {
	Release string `json:"release"`
	APIBase string `json:"apiBase"`
	Local   bool   `json:"local"`
	// Functions lists the functions that the console can call. It is absent if all are deployed.
	Functions []string `json:"functions,omitempty"`
	SignIn    signIn   `json:"signIn"`
}

// signIn is how users sign in: "local" at the local server, "redirect" at an issuer, or "none" if neither is
// configured.
type signIn struct {
	Kind     string `json:"kind"`
	Issuer   string `json:"issuer,omitempty"`
	ClientID string `json:"clientId,omitempty"`
	*endpoints
}

func (s *Site) config(w http.ResponseWriter, r *http.Request) {
	c := configuration{s.options.Release, s.options.APIBase, s.options.Local, nil, signIn{Kind: "none"}}
	if s.options.Functions != nil {
		c.Functions = s.options.calls()
	}
	if s.options.LocalUsers {
		c.SignIn.Kind = "local"
	}
	if s.issuer != nil {
		e, err := s.issuer.endpoints(r.Context())
		if err != nil {
			refuse(w, r, err)
			return
		}
		c.SignIn = signIn{"redirect", s.issuer.url, s.options.ClientID, e}
	}
	reply(w, http.StatusOK, c)
}

func (s *Site) health(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, struct {
		OK      bool   `json:"ok"`
		Release string `json:"release"`
	}{true, s.options.Release})
}

// refuse answers with the error in the API's format.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	f := fault.As(err)
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())))
	}
	type body struct {
		Class     fault.Class `json:"class"`
		Code      fault.Code  `json:"code"`
		Message   string      `json:"message"`
		RequestID string      `json:"requestId"`
	}
	reply(w, f.Status(), struct {
		OK    bool `json:"ok"`
		Error body `json:"error"`
	}{false, body{f.Class, f.Code, f.Message, obs.RequestID(r.Context())}})
}

func reply(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		status, data = http.StatusInternalServerError, fmt.Appendf(nil, `{"ok":false}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // a disconnected client is not an error
}
