package google_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	calendarapi "google.golang.org/api/calendar/v3"
	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/shared/accounts/google"
	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/emulate"
)

// emulated is the accounts of one or several processes, on one store, with a third-party OAuth server.
type emulated struct {
	*emulate.Emulator
	t        *testing.T
	accounts func() *linking.Accounts // of a process that has nothing in memory
}

func newEmulated(t *testing.T) *emulated {
	t.Helper()
	e := emulate.Start(t)
	st, err := embedded.OpenMemory(time.Now)
	st = cleanup.Close(t, st, err)
	cipher, err := tokenkey.Local(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg := google.Config{
		ClientID: emulate.ClientID, ClientSecret: emulate.ClientSecret, RedirectURL: emulate.RedirectURL,
		Scopes:  []string{compose, events},
		AuthURL: e.URL + "/o/oauth2/v2/auth", TokenURL: e.URL + "/oauth2/token", RevokeURL: e.URL + "/oauth2/revoke",
		HTTPClient: &http.Client{Timeout: await.Most},
	}
	return &emulated{e, t, func() *linking.Accounts {
		a, err := google.New(cfg, st, cipher)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}}
}

// begin starts a consent and grants it, except for the scopes in without.
func (e *emulated) begin(a *linking.Accounts, without ...string) linking.Answer {
	e.t.Helper()
	consent, err := a.Start(e.t.Context(), "u1", nil, "/settings")
	if err != nil {
		e.t.Fatal(err)
	}
	state, code := e.Consent(e.t, consent.URL, without...)
	return linking.Answer{State: state, Code: code, Browser: consent.Browser}
}

func (e *emulated) link(a *linking.Accounts) {
	e.t.Helper()
	uid, returnTo, err := a.Callback(e.t.Context(), e.begin(a))
	if got, want := [2]string{uid, returnTo}, [2]string{"u1", "/settings"}; err != nil || got != want {
		e.t.Fatalf("Callback = %q, %v; want %q", got, err, want)
	}
}

// use lists the calendar's events as the user.
func (e *emulated) use(c *http.Client) error {
	e.t.Helper()
	svc, err := calendarapi.NewService(e.t.Context(), option.WithHTTPClient(c),
		option.WithEndpoint(e.URL+"/calendar/v3/"))
	if err != nil {
		e.t.Fatal(err)
	}
	_, err = svc.Events.List("primary").Do()
	return err
}

func (e *emulated) client(a *linking.Accounts) *http.Client {
	e.t.Helper()
	c, err := clientOf(e.t.Context(), a, "u1", compose, events)
	if err != nil {
		e.t.Fatal(err)
	}
	return c
}

func TestLinkOnEmulator(t *testing.T) {
	e := newEmulated(t)
	a := e.accounts()
	e.link(a)
	list, err := a.List(t.Context(), "u1")
	want := []linking.Connection{{Provider: "google", Email: emulate.User, Status: "linked"}}
	if diff := cmp.Diff(want, list, cmpopts.IgnoreFields(linking.Connection{}, "Scopes", "LinkedAt")); err != nil ||
		diff != "" {
		t.Errorf("List: %v, and the list differs (-want +got):\n%s", err, diff)
	}
	if err := e.use(e.client(a)); err != nil {
		t.Error(err)
	}
	if err := e.use(e.client(e.accounts())); err != nil {
		t.Errorf("another process cannot use the link: %v", err)
	}
	if n := e.Calls("token"); n != 3 { // the code, and one refresh in each process
		t.Errorf("the token endpoint was asked %d times", n)
	}
}

func TestLinkOnEmulatorWrongCode(t *testing.T) {
	e := newEmulated(t)
	a := e.accounts()
	refused := func(name string, ans linking.Answer) {
		t.Helper()
		if _, _, err := a.Callback(t.Context(), ans); err == nil || fault.As(err).Class != fault.Validation ||
			fault.As(err).Field != "code" {
			t.Errorf("%s: Callback = %v; want a ValidationError of the code", name, err)
		}
		if list, err := a.List(t.Context(), "u1"); err != nil || len(list) != 0 {
			t.Errorf("%s: linked all the same: %+v, %v", name, list, err)
		}
	}
	invented := e.begin(a)
	invented.Code = "4/0AX4XfWh"
	refused("invented", invented)

	// The code of another consent was issued for another verifier (RFC 7636 §4.6).
	mine, other := e.begin(a), e.begin(a)
	mine.Code = other.Code
	refused("of another consent", mine)
}

func TestLinkOnEmulatorPartialConsent(t *testing.T) {
	e := newEmulated(t)
	a := e.accounts()
	_, _, err := a.Callback(t.Context(), e.begin(a, events))
	if !fault.Is(err, fault.Auth, fault.CodeScope) {
		t.Errorf("Callback = %v; want scope_missing", err)
	}
	if _, err := clientOf(t.Context(), a, "u1", compose); err != nil {
		t.Errorf("what was granted cannot be used: %v", err)
	}
	if _, err := clientOf(t.Context(), a, "u1", events); !fault.Is(err, fault.Auth, fault.CodeScope) {
		t.Errorf("Client = %v; want scope_missing", err)
	}
}

func TestClientRenewsExpiredToken(t *testing.T) {
	e := newEmulated(t)
	a := e.accounts()
	e.link(a)
	c := e.client(a)
	if err := e.use(c); err != nil {
		t.Fatal(err)
	}
	e.Forget()
	before := e.Calls("token")
	if err := e.use(c); err != nil {
		t.Errorf("after the token's end: %v", err)
	}
	if n := e.Calls("token") - before; n != 1 {
		t.Errorf("%d renewals; want 1", n)
	}
}

func TestLinkWithTokenEndpointDown(t *testing.T) {
	e := newEmulated(t)
	a := e.accounts()
	e.link(a)
	e.Break("token", emulate.Fault{Status: 503}, emulate.Fault{Status: 429}, emulate.Fault{},
		emulate.Fault{After: true})
	for range 4 {
		if _, err := clientOf(t.Context(), a, "u1", compose); !fault.Is(err, fault.Tool, "token_endpoint") {
			t.Errorf("Client = %v; want token_endpoint", err)
		}
	}
	if err := e.use(e.client(a)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestLinkAfterRevokedConsent(t *testing.T) {
	e := newEmulated(t)
	a := e.accounts()
	e.link(a)
	c := e.client(a)
	e.RevokeAll(t)
	if err := e.use(c); !fault.Is(err, fault.Auth, fault.CodeReauth) {
		t.Errorf("a client in use: %v; want reauth_required", err)
	}
	if _, err := clientOf(t.Context(), e.accounts(), "u1", compose); !fault.Is(err, fault.Auth, fault.CodeReauth) {
		t.Errorf("another process: %v; want reauth_required", err)
	}
	if list, err := a.List(t.Context(), "u1"); err != nil || len(list) != 1 || list[0].Status != "broken" {
		t.Errorf("List = %+v, %v; want one that is broken", list, err)
	}
	e.link(a)
	if err := e.use(e.client(a)); err != nil {
		t.Errorf("linked again: %v", err)
	}
}

func TestUnlinkOnEmulator(t *testing.T) {
	e := newEmulated(t)
	a := e.accounts()
	e.link(a)
	c, elsewhere := e.client(a), e.client(e.accounts())
	if got, err := a.Unlink(t.Context(), "u1"); err != nil || got != (linking.Unlinked{Existed: true, Revoked: true}) {
		t.Fatalf("Unlink = %+v, %v; want one that existed and was revoked", got, err)
	}
	for name, client := range map[string]*http.Client{"here": c, "in another process": elsewhere} {
		if err := e.use(client); err == nil {
			t.Errorf("a client %s still works", name)
		}
	}
	if list, err := a.List(t.Context(), "u1"); err != nil || len(list) != 0 {
		t.Errorf("List = %+v, %v", list, err)
	}
}

func TestUnlinkNotRevoked(t *testing.T) {
	e := newEmulated(t)
	a := e.accounts()
	e.link(a)
	e.Break("revoke", emulate.Fault{Status: 503})
	if got, err := a.Unlink(t.Context(), "u1"); err != nil || got != (linking.Unlinked{Existed: true}) {
		t.Errorf("Unlink = %+v, %v; want one that existed and was not revoked", got, err)
	}
}
