// Package testkit runs all of Countersign as it is deployed ([New]), on top of local servers that speak Google's
// protocols ([Cloud]): an OIDC issuer, Gmail and Calendar, and a Gemini whose answers come from the test. It also has a
// [Client] of the API. Tests, proofs and measurements use it. The servers and other test helpers are packages below it;
// none of them is deployed.
package testkit

import (
	"context"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/fakeoauth"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

// The issuer and audience of the cloud's tokens, for which Countersign is configured.
const (
	Audience     = "countersign"
	PushAudience = "https://resume.example"
	PushAccount  = "push@test-project.iam.gserviceaccount.com"
)

// Scopes are a user's scopes unless SetScopes has set others.
var Scopes = []string{"https://www.googleapis.com/auth/gmail.compose", "https://www.googleapis.com/auth/gmail.send",
	"https://www.googleapis.com/auth/calendar.events"}

// Address returns the mail address of a user.
func Address(uid string) string { return uid + "@example.com" }

// Cloud holds the services outside of Countersign. Countersign can be killed and started again with the same Cloud.
type Cloud struct {
	URL       string
	Google    *fakegoogle.Server
	OAuth     *fakegoogle.OAuth // of Google
	GitHub    *fakegithub.Server
	GitHubApp *fakegithub.OAuth // the OAuth client with which accounts are linked
	Gemini    *fakegemini.Server
	Issuer    *issuer.Issuer

	server *http.Server
	mux    *http.ServeMux
	now    func() time.Time

	mu     sync.Mutex
	model  fakegemini.ModelFunc
	fault  func(op string) fakegoogle.Fault
	scopes map[string][]string
}

var key = sync.OnceValues(issuer.NewKey)

// NewCloud starts the servers on a free port of this machine. Until SetModel is called, the model says "Hello.".
func NewCloud() (*Cloud, error) { return NewCloudAt(time.Now) }

// NewCloudAt is like NewCloud with a clock, for a Countersign with the same clock.
func NewCloudAt(now func() time.Time) (*Cloud, error) {
	c := &Cloud{mux: http.NewServeMux(), now: now, scopes: map[string][]string{}, model: Says("Hello.")}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c.URL = "http://" + ln.Addr().String()
	if err := c.open(); err != nil {
		_ = ln.Close() // the first error matters more
		return nil, err
	}
	c.server = &http.Server{Handler: c.mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = c.server.Serve(ln) }() // ends with Close
	return c, nil
}

func (c *Cloud) open() error {
	k, err := key()
	if err != nil {
		return err
	}
	if c.Issuer, err = issuer.New(c.URL+"/issuer", k, c.now); err != nil {
		return err
	}
	c.OAuth = fakegoogle.NewOAuth(fakegoogle.OAuthOptions{Issuer: c.Issuer, Scopes: c.scopesOf,
		Client: fakeoauth.Client{ClientID: clientID, ClientSecret: clientSecret, Key: []byte("a key of the cloud"),
			Now: c.now}})
	c.Google, err = fakegoogle.New(fakegoogle.Options{User: c.OAuth.User, Fault: c.faultOf, Now: c.now})
	if err != nil {
		return err
	}
	c.GitHubApp = fakegithub.NewOAuth(fakegithub.OAuthOptions{Client: fakeoauth.Client{ClientID: appID,
		ClientSecret: appSecret, Key: []byte("a key of the cloud"), Now: c.now}})
	c.GitHub = fakegithub.New(fakegithub.Options{User: c.GitHubApp.User, Web: c.URL, API: c.URL + githubAPI,
		Fault: c.faultOf, Now: c.now})
	c.GitHubApp.Routes(c.mux, "", githubAPI)
	c.mux.Handle(githubAPI+"/", http.StripPrefix(githubAPI, c.GitHub))
	c.Gemini = fakegemini.New(c.generate)
	c.mux.Handle("/issuer/", c.Issuer)
	c.OAuth.Routes(c.mux, "/accounts/")
	c.mux.Handle("/google/", http.StripPrefix("/google", c.Google))
	c.mux.Handle("/gemini/", http.StripPrefix("/gemini", c.Gemini))
	return nil
}

// Handle adds a handler of the test to the cloud's server.
func (c *Cloud) Handle(pattern string, h http.Handler) { c.mux.Handle(pattern, h) }

// Close ends the servers.
func (c *Cloud) Close() error { return c.server.Close() }

// Settings returns Countersign's configuration for this cloud, without the settings of the store.
func (c *Cloud) Settings() map[string]string {
	s := map[string]string{
		"STORE": "embedded", "PUBLIC_URL": c.URL,
		"GEMINI_API_KEY": "a-key-of-the-fake-gemini", "GEMINI_MODEL": "fake",
		"GOOGLE_GEMINI_BASE_URL": c.URL + "/gemini",
		"AUTH_ISSUER":            c.Issuer.URL(), "AUTH_AUDIENCE": Audience,
		"PUSH_ISSUER": c.Issuer.URL(), "PUSH_AUDIENCE": PushAudience, "PUSH_SERVICE_ACCOUNT": PushAccount,
		"GMAIL_API_ENDPOINT": c.URL + "/google/", "CALENDAR_API_ENDPOINT": c.URL + "/google/calendar/v3/",
	}
	maps.Copy(s, c.oauth())
	maps.Copy(s, c.app())
	return s
}

// Token returns an ID token of the user, valid for an hour.
func (c *Cloud) Token(uid string) (string, error) {
	return c.Issuer.Token(uid, Address(uid), Audience, time.Hour)
}

// PushToken returns the token that Pub/Sub and the scheduler send.
func (c *Cloud) PushToken(context.Context) (string, error) {
	return c.Issuer.PushToken(PushAccount, PushAudience)
}

// SetModel sets the function that answers as the model from now on.
func (c *Cloud) SetModel(b fakegemini.ModelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.model = b
}

func (c *Cloud) generate(r fakegemini.Request) fakegemini.Turn {
	c.mu.Lock()
	b := c.model
	c.mu.Unlock()
	return b(r)
}

// SetFault sets the function that decides which operations of Gmail and Calendar fail from now on; nil means none.
func (c *Cloud) SetFault(f func(op string) fakegoogle.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = f
}

func (c *Cloud) faultOf(op string) fakegoogle.Fault {
	c.mu.Lock()
	f := c.fault
	c.mu.Unlock()
	if f == nil {
		return fakegoogle.Fault{}
	}
	return f(op)
}

// SetScopes sets the scopes that the user has granted; without scopes the account is unlinked.
func (c *Cloud) SetScopes(uid string, scopes ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scopes[uid] = scopes
}

// scopesOf returns the scopes that the account has granted.
func (c *Cloud) scopesOf(email string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if scopes, set := c.scopes[uidOf(email)]; set {
		return scopes
	}
	return Scopes
}
