package google_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

func TestTokenKeptUntilNearEnd(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	w.linked(a, "u1", "one@example.com", compose, events)
	c := w.client(a, "u1", compose)
	for range 5 {
		if _, status, err := w.ask(c); err != nil || status != 200 {
			t.Fatal(status, err)
		}
		w.client(a, "u1", events)
	}
	if n := w.provider.count("refresh_token"); n != 1 {
		t.Errorf("%d refreshes for six clients and five calls", n)
	}
	w.pass(59*time.Minute - time.Second)
	w.client(a, "u1")
	if n := w.provider.count("refresh_token"); n != 1 {
		t.Errorf("%d refreshes before the last minute", n)
	}
	w.pass(time.Second)
	if _, status, err := w.ask(c); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	if n := w.provider.count("refresh_token"); n != 2 {
		t.Errorf("%d refreshes in the last minute", n)
	}
}

// TestTokenEndpointRetryAfter checks that an error has the wait that the token endpoint asks for.
func TestTokenEndpointRetryAfter(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	w.linked(a, "u1", "one@example.com", compose)
	w.provider.set(func(p *provider) { p.status, p.asks = 503, "600" })
	_, err := clientOf(t.Context(), w.instance(), "u1")
	if got := fault.As(err).RetryAfter; got != 10*time.Minute || !tool.IsTransient(err) {
		t.Errorf("%v, after %s", err, got)
	}
}

func TestTokenRefreshedOnce(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	w.linked(a, "u1", "one@example.com", compose)
	release := make(chan struct{})
	w.provider.set(func(p *provider) { p.hold = func() { <-release } })
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if _, err := clientOf(t.Context(), a, "u1"); err != nil {
				t.Error(err)
			}
		})
	}
	close(release)
	wg.Wait()
	if n := w.provider.count("refresh_token"); n != 1 {
		t.Errorf("%d refreshes", n)
	}
}

// TestCallerGoneDuringRotation cancels the caller while the provider, which rotates, is using the refresh token.
func TestCallerGoneDuringRotation(t *testing.T) {
	w := newEnv(t)
	w.provider.rotating = true
	a := w.instance()
	w.linked(a, "u1", "one@example.com", compose)
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	w.provider.set(func(p *provider) { p.hold = func() { cancel(); <-release } })
	_, err := clientOf(ctx, a, "u1")
	if !tool.IsTransient(err) || tool.IsAmbiguous(err) {
		t.Errorf("nothing was done yet, and the caller gets %v", err)
	}
	close(release)
	if account, _, err := w.ask(w.client(a, "u1")); err != nil || account != "one@example.com" {
		t.Errorf("the new refresh token is lost: %q, %v", account, err)
	}
}

// TestTokensOfManyUsers covers case 17 of the gauntlet: many users at once on one warm instance.
func TestTokensOfManyUsers(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	users := map[string]string{"u1": "one@example.com", "u2": "two@example.com", "u3": "three@example.com"}
	for uid, account := range users {
		w.linked(a, uid, account, compose)
	}
	var wg sync.WaitGroup
	for range 8 {
		for uid, account := range users {
			wg.Go(func() {
				c, err := clientOf(t.Context(), a, uid, compose)
				if err != nil {
					t.Error(err)
					return
				}
				if got, _, err := w.ask(c); err != nil || got != account {
					t.Errorf("%s acts as %q (%v)", uid, got, err)
				}
			})
		}
	}
	wg.Wait()
}

func TestLinkAnotherAccount(t *testing.T) {
	w := newEnv(t)
	a, other := w.instance(), w.instance()
	w.linked(a, "u1", "one@example.com", compose)
	old := w.client(a, "u1")
	w.linked(other, "u1", "two@example.com", compose)
	if account, _, err := w.ask(w.client(a, "u1")); err != nil || account != "two@example.com" {
		t.Errorf("the token of the account before is used: %q (%v)", account, err)
	}
	// A client that was made before keeps its account, and does not change it in the middle of its work.
	w.pass(2 * time.Hour)
	if account, _, err := w.ask(old); err == nil || !tool.IsTransient(err) {
		t.Errorf("the older client acts as %q (%v)", account, err)
	}
}

func TestTokenCiphertextBoundToUser(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	w.linked(a, "victim", "victim@example.com", compose)
	w.linked(a, "thief", "thief@example.com", compose)
	docs, err := w.store.Get(t.Context(), "connections/u_victim", "connections/u_thief")
	if err != nil {
		t.Fatal(err)
	}
	whole := string(docs[0].Data)
	renamed := strings.ReplaceAll(whole, `"uid":"victim"`, `"uid":"thief"`)
	for name, data := range map[string]string{"the document as it is": whole, "made out to the thief": renamed} {
		now, err := w.store.Get(t.Context(), "connections/u_thief")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.Commit(t.Context(),
			store.Update("connections/u_thief", now[0].Version, nil, []byte(data))); err != nil {
			t.Fatal(err)
		}
		// The victim's access token is in the memory of this instance.
		w.client(a, "victim")
		if _, err := clientOf(t.Context(), a, "thief", compose); err == nil {
			t.Errorf("%s: the thief has a client", name)
		} else {
			w.keepsSecrets(err)
		}
	}
}

// TestRevokedByItsUser covers hostile case AU-016.
func TestRevokedByItsUser(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	w.linked(a, "u1", "one@example.com", compose)
	w.provider.forgetConsent()
	if err := check(t.Context(), a, "u1", []string{compose}); err != nil {
		t.Fatalf("the outcome cannot be known yet: %v", err)
	}
	marked := 0
	w.store.Set(faulty.Commits(faulty.After(func(*faulty.Call) { marked++ })))
	_, err := clientOf(t.Context(), a, "u1", compose)
	w.expect(err, fault.Auth, fault.CodeReauth)
	if tool.IsTransient(err) || tool.IsAmbiguous(err) {
		t.Error("the error invites a retry")
	}
	for range 3 {
		_, err := clientOf(t.Context(), a, "u1", compose)
		w.expect(err, fault.Auth, fault.CodeReauth)
		w.expect(check(t.Context(), a, "u1", nil), fault.Auth, fault.CodeReauth)
	}
	if n := w.provider.count("refresh_token"); n != 1 {
		t.Errorf("the dead refresh token was tried %d times", n)
	}
	if marked != 1 {
		t.Errorf("the link was marked %d times", marked)
	}
	if list, err := a.List(t.Context(), "u1"); err != nil || list[0].Status != "broken" {
		t.Errorf("listed as %+v (%v)", list, err)
	}
	w.linked(a, "u1", "one@example.com", compose)
	if account, _, err := w.ask(w.client(a, "u1", compose)); err != nil || account != "one@example.com" {
		t.Errorf("linked again: %q, %v", account, err)
	}
}

func TestTokenEndpointFails(t *testing.T) {
	for name, spoil := range map[string]func(*env){
		"500":            func(w *env) { w.provider.set(func(p *provider) { p.status = 500 }) },
		"429":            func(w *env) { w.provider.set(func(p *provider) { p.status = 429 }) },
		"invalid_client": func(w *env) { w.provider.set(func(p *provider) { p.status = 401 }) },
		"a redirect":     func(w *env) { w.provider.set(func(p *provider) { p.status = 307 }) },
		"no connection":  func(w *env) { w.provider.srv.Close() },
		"the store":      func(w *env) { w.store.Set(faulty.Down) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			a := w.instance()
			w.linked(a, "u1", "one@example.com", compose)
			spoil(w)
			_, err := clientOf(t.Context(), a, "u1", compose)
			if !tool.IsTransient(err) || tool.IsAmbiguous(err) || fault.As(err).Class != fault.Tool {
				t.Errorf("got %v, want a ToolExecutionError that a retry may mend", err)
			}
			w.keepsSecrets(err)
			w.store.Set()
			if err := check(t.Context(), a, "u1", nil); err != nil {
				t.Errorf("an outage has broken the link: %v", err)
			}
		})
	}
}

func TestRotatingRefreshTokens(t *testing.T) {
	w := newEnv(t)
	w.provider.rotating = true
	a, b := w.instance(), w.instance()
	w.linked(a, "u1", "one@example.com", compose)
	for n := range 4 {
		if account, _, err := w.ask(w.client([]*linking.Accounts{a, b}[n%2], "u1")); err != nil ||
			account != "one@example.com" {
			t.Fatalf("round %d: %q, %v", n, account, err)
		}
		w.pass(2 * time.Hour)
	}
	if len(w.provider.refresh) != 1 {
		t.Errorf("%d refresh tokens are alive", len(w.provider.refresh))
	}
}

// TestRotationRace lets another instance use the refresh token after this one has read it and before it uses it.
func TestRotationRace(t *testing.T) {
	w := newEnv(t)
	w.provider.rotating = true
	w.linked(w.instance(), "u1", "one@example.com", compose)
	other := w.instance()
	a := w.overtaken(2, func() { w.client(other, "u1") })
	if account, _, err := w.ask(w.client(a, "u1")); err != nil || account != "one@example.com" {
		t.Errorf("got %q, %v; want account “one@example.com”", account, err)
	}
	if list, err := a.List(t.Context(), "u1"); err != nil || list[0].Status != "linked" {
		t.Errorf("the race has broken the link: %+v (%v)", list, err)
	}
}

// TestRotationWithOtherWrite changes the document while the provider issues a new refresh token.
func TestRotationWithOtherWrite(t *testing.T) {
	w := newEnv(t)
	w.provider.rotating = true
	w.linked(w.instance(), "u1", "one@example.com", compose)

	touch := func() {
		docs, err := w.store.Get(t.Context(), "connections/u_u1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.Commit(t.Context(),
			store.Update(docs[0].Path, docs[0].Version, nil, docs[0].Data)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := clientOf(t.Context(), w.overtaken(2, touch), "u1"); err != nil {
		t.Fatalf("another process's write stops this one: %v", err)
	}
	if account, _, err := w.ask(w.client(w.instance(), "u1")); err != nil || account != "one@example.com" {
		t.Errorf("the new refresh token was not stored: %q, %v", account, err)
	}

	unlink := func() {
		w.provider.set(func(p *provider) { p.revokes = 500 })
		if _, err := w.instance().Unlink(t.Context(), "u1"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := clientOf(t.Context(), w.overtaken(2, unlink), "u1"); !tool.IsTransient(err) {
		t.Errorf("unlinked meanwhile: got %v", err)
	}
	if list, err := w.instance().List(t.Context(), "u1"); err != nil || len(list) != 0 {
		t.Errorf("an unlinked account is back: %+v (%v)", list, err)
	}
}
