package github_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

func update(d store.Doc, data string) store.Write {
	return store.Update(d.Path, d.Version, nil, []byte(data))
}

// TestAccessTokenShared links in one process and acts in others, over several lifetimes of the token. The use of a
// refresh token ends the previous access token, so each token is requested once.
func TestAccessTokenShared(t *testing.T) {
	w := newEnv(t)
	a, b := w.instance(), w.instance()
	w.link(a, "u1", "octo-cat")
	for n := range 4 {
		w.is(a, "u1", "octo-cat")
		w.is(b, "u1", "octo-cat")
		w.is(w.instance(), "u1", "octo-cat")
		if asked := w.count("POST " + tokenPath); asked != n+1 {
			t.Fatalf("after %d renewals the token endpoint was asked %d times", n, asked)
		}
		w.pass(8 * time.Hour)
	}
}

// TestRenewalByManyInstances checks that only one of several instances requests new tokens.
func TestRenewalByManyInstances(t *testing.T) {
	w := newEnv(t)
	w.link(w.instance(), "u1", "octo-cat")
	w.pass(9 * time.Hour)
	arrived, release := make(chan struct{}, 6), make(chan struct{})
	w.around(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			arrived <- struct{}{}
			<-release
			next.ServeHTTP(rw, r)
		})
	})
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() { w.is(w.instance(), "u1", "octo-cat") })
	}
	<-arrived // an instance that does not wait for its turn would arrive here too
	close(release)
	wg.Wait()
	if n := w.count("POST " + tokenPath); n != 2 {
		t.Errorf("the token endpoint was asked %d times", n)
	}
	if got := w.status("u1"); got != "linked" {
		t.Errorf("the race has left the link %s", got)
	}
}

// TestRenewalAfterPause stops a process before its request, until its claim has ended. Meanwhile another process uses
// the refresh token. The answer to that process is delayed until the first, which was refused, has read the store. The
// link must stay: the user has not revoked the consent.
func TestRenewalAfterPause(t *testing.T) {
	w := newEnv(t)
	w.link(w.instance(), "u1", "octo-cat")
	w.pass(9 * time.Hour)
	var asked atomic.Int64
	other, refused := make(chan struct{}), make(chan struct{})
	var told atomic.Bool
	var second sync.WaitGroup
	w.around(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if asked.Add(1) > 1 { // the request of the other process
				next.ServeHTTP(rw, r)
				close(other)
				<-refused
				return
			}
			w.pass(time.Minute)
			second.Go(func() { w.is(w.instance(), "u1", "octo-cat") })
			<-other
			next.ServeHTTP(rw, r)
			told.Store(true)
		})
	})
	looked := faulty.Gets(faulty.After(func(*faulty.Call) {
		if told.CompareAndSwap(true, false) {
			close(refused)
		}
	}))
	w.store.While(looked, func() { w.is(w.instance(), "u1", "octo-cat") })
	second.Wait()
	if n := asked.Load(); n != 2 {
		t.Errorf("the token endpoint was asked %d times", n)
	}
	if got := w.status("u1"); got != "linked" {
		t.Errorf("the link is %s", got)
	}
}

// TestRenewalAnsweredLate checks that the new tokens are stored within a time limit of their own, not within the rest
// of the call's, because the old tokens are used up.
func TestRenewalAnsweredLate(t *testing.T) {
	w := newEnv(t)
	w.link(w.instance(), "u1", "octo-cat")
	w.pass(9 * time.Hour)
	var until []time.Time
	w.store.While(func(ctx context.Context, c *faulty.Call, next faulty.Next) error {
		if end, ok := ctx.Deadline(); ok && len(c.Writes) > 0 {
			until = append(until, end)
		}
		return next(ctx)
	}, func() { w.is(w.instance(), "u1", "octo-cat") })
	if len(until) != 2 || until[0].Equal(until[1]) {
		t.Errorf("the claim is committed by %v at the latest, and then the tokens", until)
	}
}

// TestAccessTokenRejected renews the token in another instance while this one has the older token in memory.
func TestAccessTokenRejected(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	w.link(a, "u1", "octo-cat")
	c, err := w.client(a, "u1")
	if err != nil {
		t.Fatal(err)
	}
	w.pass(7*time.Hour + 59*time.Minute + 30*time.Second)
	w.is(w.instance(), "u1", "octo-cat")
	w.pass(-time.Hour) // this instance's clock is slow, so it takes its token for valid
	if got, err := w.asks(c); got != "octo-cat" || err != nil {
		t.Errorf("%q, %v; want got “octo-cat”", got, err)
	}
	if n := w.count("POST " + tokenPath); n != 2 {
		t.Errorf("the token endpoint was asked %d times", n)
	}
}

func TestTakenBackByItsUser(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	w.link(a, "u1", "octo-cat")
	w.oauth.RevokeAll("octo-cat")
	for range 3 {
		_, err := w.whose(a, "u1")
		w.expect(err, fault.Auth, fault.CodeReauth)
		if tool.IsTransient(err) {
			t.Error("the error invites a retry")
		}
	}
	if n := w.count("POST " + tokenPath); n != 2 {
		t.Errorf("the dead refresh token was tried %d times", n-1)
	}
	if got := w.status("u1"); got != "broken" {
		t.Errorf("the link is %s", got)
	}
	w.link(a, "u1", "octo-cat")
	w.is(a, "u1", "octo-cat")
}

// TestAppWithoutRefreshTokens tests an App without refresh tokens.
func TestAppWithoutRefreshTokens(t *testing.T) {
	w := newEnv(t, true)
	a := w.instance()
	w.link(a, "u1", "octo-cat")
	w.pass(400 * 24 * time.Hour)
	w.is(a, "u1", "octo-cat")
	w.is(w.instance(), "u1", "octo-cat")
	w.oauth.RevokeAll("octo-cat")
	_, err := w.whose(w.instance(), "u1")
	w.expect(err, fault.Auth, fault.CodeReauth)
	if got, n := w.status("u1"), w.count("POST "+tokenPath); got != "broken" || n != 1 {
		t.Errorf("the link is %s after %d requests", got, n)
	}
}

// TestFailedRenewals checks that a failed renewal that used no token leaves the link as it was.
func TestFailedRenewals(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
	}{
		"503":            {http.StatusServiceUnavailable, "<html>"},
		"429":            {http.StatusTooManyRequests, ""},
		"another secret": {http.StatusOK, "error=incorrect_client_credentials"},
		"nothing":        {http.StatusOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			a := w.instance()
			w.link(a, "u1", "octo-cat")
			w.pass(9 * time.Hour)
			w.answers(c.status, c.body)
			for range 2 { // the first attempt releases the claim
				if _, err := w.whose(a, "u1"); !tool.IsTransient(err) || tool.IsAmbiguous(err) {
					t.Errorf("got %v", err)
				}
			}
			if n := w.count("POST " + tokenPath); n != 3 {
				t.Errorf("asked %d times", n)
			}
			w.around(nil)
			w.is(w.instance(), "u1", "octo-cat")
		})
	}
}

// lost lets the token endpoint execute its request and loses the answer.
func (w *env) lost() {
	w.around(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		})
	})
}

// TestRenewalLost tests failures between GitHub's answer and the commit: the answer is lost, the store refuses it, or
// the process ends. The user must link again.
func TestRenewalLost(t *testing.T) {
	for name, lose := range map[string]func(*env){
		"the answer": func(w *env) {
			w.lost()
			if _, err := w.whose(w.instance(), "u1"); !tool.IsTransient(err) {
				w.t.Errorf("the first is told %v", err)
			}
		},
		"the store": func(w *env) {
			w.around(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					next.ServeHTTP(rw, r)
					w.store.Set(faulty.Commits(faulty.Down))
				})
			})
			_, err := w.whose(w.instance(), "u1")
			w.expect(err, fault.Tool, fault.CodeStoreUnavailable)
			w.store.Set()
			w.pass(time.Minute) // its claim has ended
		},
		"the process": func(w *env) {
			docs, err := w.store.Get(w.t.Context(), "connections/github_u1")
			if err != nil {
				w.t.Fatal(err)
			}
			w.is(w.instance(), "u1", "octo-cat")            // it has used the refresh token,
			w.overwrite(docs[0].Path, string(docs[0].Data)) // as if the store had kept none of the changes
			w.pass(9 * time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.link(w.instance(), "u1", "octo-cat")
			w.pass(9 * time.Hour)
			lose(w)
			w.around(nil)
			asked := w.count("POST " + tokenPath)
			for range 3 {
				_, err := w.whose(w.instance(), "u1")
				w.expect(err, fault.Auth, fault.CodeReauth)
			}
			if n := w.count("POST " + tokenPath); n != asked+1 {
				t.Errorf("GitHub was asked %d times more", n-asked)
			}
			w.link(w.instance(), "u1", "octo-cat")
			w.is(w.instance(), "u1", "octo-cat")
		})
	}
}

// TestRenewalWithFailingStore checks that new tokens are kept while the store fails for a moment, because no other
// tokens are valid.
func TestRenewalWithFailingStore(t *testing.T) {
	for name, hook := range map[string]faulty.Hook{"not written": faulty.Down, "written, and not said": faulty.Lost} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.link(w.instance(), "u1", "octo-cat")
			w.pass(9 * time.Hour)
			afterTheClaim := func(n int) bool { return n == 2 || n == 3 }
			w.store.Set(faulty.Commits(faulty.Each(afterTheClaim, hook)))
			w.is(w.instance(), "u1", "octo-cat")
			w.store.Set()
			w.is(w.instance(), "u1", "octo-cat")
			if n := w.count("POST " + tokenPath); n != 2 {
				t.Errorf("the token endpoint was asked %d times", n)
			}
		})
	}
}

// TestInstanceStoppedDuringRenewal stops an instance while it stores the new tokens, for longer than it retries.
// Meanwhile another instance is refused because the refresh token is used, and marks the link as broken.
func TestInstanceStoppedDuringRenewal(t *testing.T) {
	w := newEnv(t)
	w.link(w.instance(), "u1", "octo-cat")
	w.pass(9 * time.Hour)
	// the first commit is the instance's claim
	stopped := faulty.Nth(2, func(ctx context.Context, _ *faulty.Call, _ faulty.Next) error {
		w.store.Set()
		w.pass(time.Minute)
		_, err := w.whose(w.instance(), "u1")
		w.expect(err, fault.Auth, fault.CodeReauth)
		<-ctx.Done()
		return ctx.Err()
	})
	w.store.Set(faulty.Commits(stopped))
	w.is(w.instance(), "u1", "octo-cat")
	w.is(w.instance(), "u1", "octo-cat")
	if got := w.status("u1"); got != "linked" {
		t.Errorf("the link is %s", got)
	}
}

// TestRenewalClaimEnds ends an instance after its claim and before its request.
func TestRenewalClaimEnds(t *testing.T) {
	w := newEnv(t)
	w.link(w.instance(), "u1", "octo-cat")
	w.pass(9 * time.Hour)
	w.around(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			w.store.Set(faulty.Down) // so that it cannot release its claim
			panic(http.ErrAbortHandler)
		})
	})
	if _, err := w.whose(w.instance(), "u1"); !tool.IsTransient(err) {
		t.Errorf("got %v", err)
	}
	w.store.Set()
	w.around(nil)
	w.pass(28 * time.Second)
	w.is(w.instance(), "u1", "octo-cat")
}

// TestUnlinkDuringRenewal checks that a renewal does not restore a link that was removed.
func TestUnlinkDuringRenewal(t *testing.T) {
	w := newEnv(t)
	w.link(w.instance(), "u1", "octo-cat")
	w.pass(9 * time.Hour)
	w.around(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(rw, r)
			if _, err := w.instance().Provider().Forget(r.Context(), w.store, "u1", w.now()); err != nil {
				t.Error(err)
			}
		})
	})
	if _, err := w.whose(w.instance(), "u1"); !tool.IsTransient(err) {
		t.Errorf("got %v", err)
	}
	if got := w.status("u1"); got != "none" {
		t.Errorf("the link is %s", got)
	}
}
