package google_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/countersign-run/countersign/shared/accounts/google"
	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

func TestLinkAndUse(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	if err := check(t.Context(), a, "u1", []string{compose}); !fault.Is(err, fault.Auth, fault.CodeReauth) ||
		!strings.Contains(err.Error(), "No Google account is linked. Please link one first.") {
		t.Fatalf("without a link: %v", err)
	}
	w.linked(a, "u1", "one@example.com", compose)
	if err := check(t.Context(), a, "u1", []string{compose}); err != nil {
		t.Fatal(err)
	}
	account, status, err := w.ask(w.client(a, "u1", compose))
	if got := fmt.Sprint(account, " ", status, " ", err); got != "one@example.com 200 <nil>" {
		t.Fatalf("got %s; want one@example.com 200", got)
	}
	list, err := a.List(t.Context(), "u1")
	want := []linking.Connection{{Provider: "google", Email: "one@example.com", Status: "linked", LinkedAt: w.now()}}
	if diff := cmp.Diff(want, list, cmpopts.IgnoreFields(linking.Connection{}, "Scopes")); err != nil || diff != "" {
		t.Errorf("List: %v, and the list differs (-want +got):\n%s", err, diff)
	}
	list, err = a.List(t.Context(), "u2")
	if diff := cmp.Diff([]linking.Connection{}, list); err != nil || diff != "" {
		t.Errorf("List of another user: %v, and the list differs (-want +got):\n%s", err, diff)
	}
}

func TestScopesAdded(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	w.linked(a, "u1", "one@example.com", compose)
	err := check(t.Context(), a, "u1", []string{compose, events})
	w.expect(err, fault.Auth, fault.CodeScope)
	if cause := errors.Unwrap(err).Error(); cause != "not granted: "+events || strings.Contains(err.Error(), events) ||
		!strings.Contains(err.Error(), "Link it again") {
		t.Errorf("the cause does not say what is missing, or the message what to do: %v (%s)", err, cause)
	}
	if _, err := clientOf(t.Context(), a, "u1", events); !fault.Is(err, fault.Auth, fault.CodeScope) {
		t.Errorf("a client without its scope: %v", err)
	}
	consent, err := a.Start(t.Context(), "u1", []string{events}, "")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(consent.URL)
	if err != nil {
		t.Fatal(err)
	}
	if got := u.Query().Get("scope"); got != "openid email "+events {
		t.Errorf("asked for %q", got)
	}
	if got := u.Query().Get("login_hint"); got != "one@example.com" {
		t.Errorf("the same account is not suggested: %q", got)
	}
	w.linked(a, "u1", "one@example.com", events)
	if err := check(t.Context(), a, "u1", []string{compose, events}); err != nil {
		t.Errorf("what was granted before is lost: %v", err)
	}
}

// TestReadOnlyScope covers hostile case AU-017.
func TestReadOnlyScope(t *testing.T) {
	const readOnly = "https://www.googleapis.com/auth/calendar.readonly"
	w := newEnv(t)
	a := w.instance(func(c *google.Config) { c.Scopes = []string{readOnly, events} })
	w.linked(a, "u1", "one@example.com", readOnly)
	_, err := clientOf(t.Context(), a, "u1", events)
	w.expect(err, fault.Auth, fault.CodeScope)
	if fault.As(err).Status() != 403 {
		t.Errorf("the status is %d", fault.As(err).Status())
	}
}

func TestUntickedScope(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	err := w.link(a, "u1", "one@example.com", []string{compose, events}, compose)
	w.expect(err, fault.Auth, fault.CodeScope)
	if err := check(t.Context(), a, "u1", []string{events}); err != nil {
		t.Errorf("what was granted cannot be used: %v", err)
	}
	w.expect(check(t.Context(), a, "u1", []string{compose}), fault.Auth, fault.CodeScope)
}

func TestConsentDenied(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	ans := w.consents(a, "u1", "/back?x=1")
	no := linking.Answer{State: ans.State, Error: "access_denied", Browser: ans.Browser}
	uid, returnTo, err := a.Callback(t.Context(), no)
	if uid != "u1" || returnTo != "/back?x=1" || !fault.Is(err, fault.Auth, fault.CodeForbidden) {
		t.Errorf("got %q, %q, %v; want uid “u1”, returnTo “/back?x=1”, error %v %v",
			uid, returnTo, err, fault.Auth, fault.CodeForbidden)
	}
	if _, _, err := a.Callback(t.Context(), ans); !fault.Is(err, fault.Validation,
		"invalid") {
		t.Errorf("the state can be used after a no: %v", err)
	}
}

func TestStatesRefused(t *testing.T) {
	for name, spoil := range map[string]func(w *env, ans *linking.Answer){
		"unknown":          func(_ *env, ans *linking.Answer) { ans.State = strings.Repeat("A", 43) },
		"empty":            func(_ *env, ans *linking.Answer) { ans.State = "" },
		"a path":           func(_ *env, ans *linking.Answer) { ans.State = "../connections/u_u1" },
		"expired":          func(w *env, _ *linking.Answer) { w.pass(10*time.Minute + time.Second) },
		"another browser":  func(_ *env, ans *linking.Answer) { ans.Browser = strings.Repeat("B", 43) },
		"no cookie at all": func(_ *env, ans *linking.Answer) { ans.Browser = "" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			a := w.instance()
			ans := w.consents(a, "u1", "")
			spoil(w, &ans)
			uid, returnTo, err := a.Callback(t.Context(), ans)
			w.expect(err, fault.Validation, "invalid")
			if uid != "" || returnTo != "" || fault.As(err).Field != "state" {
				t.Errorf("got %q, %q, %v; want uid empty, returnTo empty, fault.As(err).Field “state”",
					uid, returnTo, err)
			}
			if w.provider.count("authorization_code") != 0 {
				t.Error("the code was sent to the provider")
			}
			w.expect(check(t.Context(), a, "u1", nil), fault.Auth, fault.CodeReauth)
		})
	}
}

func TestStartForProgram(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	ans := w.consents(a, "u1", "")
	_, _, err := a.Callback(t.Context(), linking.Answer{State: ans.State, Code: ans.Code})
	if w.expect(err, fault.Validation, "invalid"); !strings.Contains(err.Error(), "in the browser in which") {
		t.Errorf("told %v", err)
	}
	if _, _, err := a.Callback(t.Context(), ans); err != nil {
		t.Errorf("the browser comes too late: %v", err)
	}
}

// TestConsentsLimited checks that only the newest consents of a user are valid, and that ended ones are swept.
func TestConsentsLimited(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	type begun struct {
		linking.Consent
		state, code string
	}
	var all []begun
	for range 12 {
		c, err := a.Start(t.Context(), "u1", nil, "")
		if err != nil {
			t.Fatal(err)
		}
		state, code := w.provider.consent(c.URL, "one@example.com")
		all = append(all, begun{c, state, code})
		w.pass(time.Second)
	}
	if other, err := a.Start(t.Context(), "u2", nil, ""); err != nil || other.URL == "" {
		t.Fatal(err)
	}
	ends := func(i int) error {
		_, _, err := a.Callback(t.Context(),
			linking.Answer{State: all[i].state, Code: all[i].code, Browser: all[i].Browser})
		return err
	}
	for i := range 7 {
		w.expect(ends(i), fault.Validation, "invalid")
	}
	forged := all[8].state[:34] + "." + strings.Repeat("A", 43)
	if _, _, err := a.Callback(t.Context(), linking.Answer{State: forged, Code: "c", Browser: "b"}); err == nil {
		t.Error("a state that only names the place is taken")
	}
	for _, i := range []int{11, 8} {
		if err := ends(i); err != nil {
			t.Errorf("consent %d: %v", i, err)
		}
	}
	sweep := func(want int) {
		t.Helper()
		if n, err := linking.Sweep(t.Context(), w.store, w.now()); err != nil || n != want {
			t.Errorf("swept %d, %v, want %d", n, err, want)
		}
	}
	sweep(0)
	w.pass(10 * time.Minute)
	sweep(4) // three of u1, one of u2
	sweep(0)
}

// TestConsentsSweptInPages begins more consents than one user can have and than one commit of the sweep deletes. Each
// user keeps at most the limit, and one sweep deletes all that have ended.
func TestConsentsSweptInPages(t *testing.T) {
	const users, places, page = 90, 5, 200
	w := newEnv(t)
	a := w.instance()
	begin := func(user string) {
		if _, err := a.Start(t.Context(), user, nil, ""); err != nil {
			t.Fatal(err)
		}
	}
	for u := range users {
		for range places + 2 {
			begin(fmt.Sprintf("u%d", u))
		}
	}
	w.pass(10 * time.Minute)
	begin("late")
	var sizes []int
	seen := faulty.Wrap(w.store, faulty.Commits(faulty.Before(
		func(c *faulty.Call) { sizes = append(sizes, len(c.Writes)) })))
	if n, err := linking.Sweep(t.Context(), seen, w.now()); err != nil || n != users*places {
		t.Errorf("Sweep = %d, %v; want %d", n, err, users*places)
	}
	if diff := cmp.Diff([]int{page, page, users*places - 2*page}, sizes); diff != "" {
		t.Errorf("the sizes of the commits differ (-want +got):\n%s", diff)
	}
	left, err := w.store.Query(t.Context(),
		store.Query{Collection: "oauth_states", OrderBy: "due", Limit: store.MaxLimit})
	if err != nil || len(left) != 1 {
		t.Errorf("%d are left, want the one that has not ended; %v", len(left), err)
	}
}

// TestStateUsedOnce runs a second callback right after the first has read the state.
func TestStateUsedOnce(t *testing.T) {
	w := newEnv(t)
	ans := w.consents(w.instance(), "u1", "")
	first := w.overtaken(1, func() {
		if _, _, err := w.instance().Callback(t.Context(), ans); err != nil {
			t.Errorf("the faster of the two: %v", err)
		}
	})
	_, _, err := first.Callback(t.Context(), ans)
	w.expect(err, fault.Validation, "invalid")
	if n := w.provider.count("authorization_code"); n != 1 {
		t.Errorf("the code was sent %d times", n)
	}
}

func TestCodeOfAnotherConsent(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	mine, err := a.Start(t.Context(), "attacker", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := a.Start(t.Context(), "victim", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	myState, _ := w.provider.consent(mine.URL, "attacker@example.com")
	_, theirCode := w.provider.consent(theirs.URL, "victim@example.com")
	_, _, err = a.Callback(t.Context(), linking.Answer{State: myState, Code: theirCode, Browser: mine.Browser})
	w.expect(err, fault.Validation, "invalid") // PKCE: the verifier is the other consent's
	w.expect(check(t.Context(), a, "attacker", nil), fault.Auth, fault.CodeReauth)
}

func TestStartRefused(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	_, err := a.Start(t.Context(), "u1", []string{compose, "https://mail.google.com/"}, "")
	w.expect(err, fault.Validation, "invalid")
	for _, elsewhere := range []string{
		"https://evil.example/", "//evil.example", "///evil.example", "/\\evil.example", "\\\\evil.example",
		"javascript:alert(1)", "settings",
		"/a\r\nSet-Cookie: x", "/\t/evil.example", "/ x", "/" + strings.Repeat("a", 512), "/%zz", "/\x7f", "/ä",
	} {
		_, err := a.Start(t.Context(), "u1", nil, elsewhere)
		if !fault.Is(err, fault.Validation, "invalid") || fault.As(err).Field != "returnTo" {
			t.Errorf("returnTo %q: got %v", elsewhere, err)
		}
	}
	dry := w.instance(func(c *google.Config) { c.Rand = failingReader{} })
	if _, err := dry.Start(t.Context(), "u1", nil, ""); err == nil {
		t.Error("a consent without randomness")
	}
}

func TestCallbackProviderFails(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*env)
		class fault.Class
		code  fault.Code
	}{
		"down": {func(w *env) { w.provider.set(func(p *provider) { p.status = 503 }) }, fault.Tool,
			"token_endpoint"},
		"no refresh token": {func(w *env) { w.provider.set(func(p *provider) { p.quiet = true }) }, fault.Tool,
			"no_lasting_access"},
		"gone": {func(w *env) { w.provider.srv.Close() }, fault.Tool, "token_endpoint"},
		"the store": {func(w *env) { w.store.Set(faulty.Down) }, fault.Tool,
			fault.CodeStoreUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			a := w.instance()
			ans := w.consents(a, "u1", "")
			c.spoil(w)
			_, _, err := a.Callback(t.Context(), ans)
			w.expect(err, c.class, c.code)
		})
	}
}

// TestStoredTokensEncrypted reads the whole store during a consent and after it.
func TestStoredTokensEncrypted(t *testing.T) {
	w := newEnv(t)
	var seen strings.Builder
	a := w.on(faulty.Wrap(w.store, faulty.Commits(faulty.Before(func(c *faulty.Call) {
		for _, w := range c.Writes {
			seen.WriteString(w.Doc.Path + "\n" + string(w.Doc.Data) + "\n")
		}
	}))))
	ans := w.consents(a, "u1", "")
	if _, _, err := a.Callback(t.Context(), ans); err != nil {
		t.Fatal(err)
	}
	if _, err := clientOf(t.Context(), a, "u1"); err != nil {
		t.Fatal(err)
	}
	secrets := map[string]bool{ans.State: true, ans.Browser: true}
	for s := range w.provider.seen {
		secrets[s] = true
	}
	for secret := range secrets {
		if strings.Contains(seen.String(), secret) {
			t.Errorf("%q is stored as it is", secret)
		}
	}
	if !strings.Contains(seen.String(), "connections/u_u1") ||
		!strings.Contains(seen.String(), "oauth_states/") {
		t.Error("the recorder has seen nothing")
	}
}

func TestSettingsRefused(t *testing.T) {
	w := newEnv(t)
	good := google.Config{ClientID: clientID, RedirectURL: redirectURL, Scopes: []string{compose}}
	for name, change := range map[string]func(*google.Config){
		"no client":              func(c *google.Config) { c.ClientID = "" },
		"no scopes":              func(c *google.Config) { c.Scopes = nil },
		"no callback":            func(c *google.Config) { c.RedirectURL = "" },
		"callback without TLS":   func(c *google.Config) { c.RedirectURL = "http://app.example/callback" },
		"tokens without TLS":     func(c *google.Config) { c.TokenURL = "http://app.example/token" },
		"revocation without TLS": func(c *google.Config) { c.RevokeURL = "ftp://app.example" },
	} {
		cfg := good
		change(&cfg)
		if _, err := google.New(cfg, w.store, w.cipher); err == nil {
			t.Errorf("%s: is accepted", name)
		}
	}
	if _, err := google.New(good, w.store, nil); err == nil {
		t.Error("no cipher: is accepted")
	}
	if _, err := google.New(good, w.store, w.cipher); err != nil {
		t.Errorf("the good settings: %v", err)
	}
}
