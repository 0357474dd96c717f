package auth_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/accounts/auth"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

// BenchmarkUser measures the check of a new token, and of a token that was checked before, as in each further request
// of a signed-in user.
//
//	go test ./shared/accounts/auth -run '^$' -bench User -benchmem
func BenchmarkUser(b *testing.B) {
	w := newInternet(b)
	users := w.verifier(b, nil)
	b.Run("again", func(b *testing.B) {
		r := request("Bearer " + w.sign(b, w.users, w.userClaims()))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := users.User(r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("new", func(b *testing.B) {
		var requests []*http.Request
		for n := range 5000 { // more than the verifier remembers
			claims := w.userClaims()
			claims["jti"] = n
			requests = append(requests, request("Bearer "+w.sign(b, w.users, claims)))
		}
		b.ReportAllocs()
		b.ResetTimer()
		for n := 0; b.Loop(); n++ {
			if _, err := users.User(requests[n%len(requests)]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestTokenVerifiedOnce counts allocations, because go-oidc makes a hundred of them to verify a signature.
func TestTokenVerifiedOnce(t *testing.T) {
	w := newInternet(t)
	v, p := w.verifier(t, nil), w.push(t, nil)
	user, push := request("Bearer "+w.sign(t, w.users, w.userClaims())), request("Bearer "+w.sign(t, w.pushers,
		w.pushClaims()))
	for name, check := range map[string]func() error{
		"a user's": func() error { _, err := v.User(user); return err },
		"a push":   func() error { return p.Check(push) },
	} {
		allocs := testing.AllocsPerRun(20, func() {
			if err := check(); err != nil {
				t.Error(name, err)
			}
		})
		if allocs > 5 {
			t.Errorf("%s token is checked again with %v allocations", name, allocs)
		}
		if allocs := testing.AllocsPerRun(1, func() { w.now = w.now.Add(10 * time.Minute); _ = check() }); allocs < 50 {
			t.Errorf("%s token is remembered after ten minutes: %v allocations", name, allocs)
		}
	}
}

// TestRememberedTokenEnds checks that a remembered token is refused after its exp, and once its key is found to be
// removed.
func TestRememberedTokenEnds(t *testing.T) {
	const short, long = 5 * time.Minute, 2 * time.Hour
	for name, c := range map[string]struct {
		ttl    time.Duration
		later  time.Duration
		issuer func(w *internet) http.Handler // nil: the same
		want   int
	}{
		"minutes later":              {long, 9 * time.Minute, nil, http.StatusOK},
		"the second before it ends":  {short, short - time.Second, nil, http.StatusOK},
		"it has expired":             {short, short, nil, http.StatusUnauthorized},
		"the clock was set back":     {long, -2 * time.Minute, nil, http.StatusUnauthorized},
		"its key was withdrawn":      {long, 11 * time.Second, next, http.StatusUnauthorized},
		"its key's id is another's":  {long, 11 * time.Second, renamed, http.StatusUnauthorized},
		"an hour after a withdrawal": {long, time.Hour + time.Second, next, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			w := newInternet(t)
			v := w.verifier(t, nil)
			claims := w.userClaims()
			claims["exp"] = w.now.Add(c.ttl).Unix()
			r := request("Bearer " + w.sign(t, w.users, claims))
			for range 2 {
				if _, err := v.User(r); err != nil {
					t.Fatal(err)
				}
			}
			w.now = w.now.Add(c.later)
			if c.issuer != nil {
				w.hosts["securetoken.google.com"] = c.issuer(w)
				unknown := forge(t, claimSet{"alg": "RS256", "kid": "unknown"}, claims, keys()["evil"], nil)
				_, err := v.User(request("Bearer " + unknown)) // which makes the verifier fetch the keys again
				refusal(t, err)
			}
			if _, err := v.User(r); status(err) != c.want {
				t.Errorf("got %v, want %d", err, c.want)
			}
		})
	}
}

// next is the issuer after a rotation of its keys.
func next(w *internet) http.Handler {
	i, err := issuer.New(firebase, keys()["next"], w.clock)
	if err != nil {
		panic(err)
	}
	return i
}

// renamed is the issuer after a rotation, with its new key under the ID of the old one.
func renamed(w *internet) http.Handler {
	of := next(w)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		of.ServeHTTP(rec, r)
		w.Header().Set("Content-Type", "application/json")
		before, after := issuer.KeyID(keys()["next"]), issuer.KeyID(keys()["good"])
		fmt.Fprint(w, strings.ReplaceAll(rec.Body.String(), before, after))
	})
}

// TestRefusalsNotRemembered checks that a token that was refused for its time or for a missing key is accepted once the
// time or the key is right.
func TestRefusalsNotRemembered(t *testing.T) {
	w := newInternet(t)
	v := w.verifier(t, nil)
	claims := w.userClaims()
	claims["nbf"] = w.now.Add(5 * time.Minute).Unix()
	early := request("Bearer " + w.sign(t, w.users, claims))
	next := request("Bearer " + w.sign(t, w.issuer(t, firebase, "next"), claims))
	for _, r := range []*http.Request{early, next} {
		if _, err := v.User(r); status(err) != http.StatusUnauthorized {
			t.Fatalf("got %v; want status(err) %v", err, http.StatusUnauthorized)
		}
	}
	w.now = w.now.Add(5 * time.Minute)
	if _, err := v.User(early); err != nil {
		t.Errorf("its time has come: %v", err)
	}
	w.hosts["securetoken.google.com"] = w.issuer(t, firebase, "next")
	if _, err := v.User(next); err != nil {
		t.Errorf("its key has come: %v", err)
	}
}

// TestRememberedTokensAgree compares two verifiers while time passes, keys change and the issuer is down. One sees the
// same tokens again and again. The other sees each token with a claim that makes it new.
func TestRememberedTokensAgree(t *testing.T) {
	tb, serial := t, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newInternet(tb)
		remembering, twin := w.verifier(tb, nil), w.verifier(tb, nil)
		type shown struct {
			by     *issuer.Issuer
			claims claimSet
			token  string
		}
		var tokens []shown
		signers := []*issuer.Issuer{w.users, w.issuer(tb, firebase, "next"), w.issuer(tb, firebase, "evil")}
		t.Repeat(map[string]func(*rapid.T){
			"sign": func(t *rapid.T) {
				s := shown{by: rapid.SampledFrom(signers).Draw(t, "by"), claims: w.userClaims()}
				s.claims["sub"] = rapid.SampledFrom([]string{"userA", "userB", ".."}).Draw(t, "sub")
				s.claims["aud"] = rapid.SampledFrom([]string{project, project, "other"}).Draw(t, "aud")
				s.claims["iat"] = w.now.Unix() + int64(rapid.SampledFrom([]int{-60, 0, 60, 90}).Draw(t, "iat"))
				s.claims["exp"] = w.now.Unix() + int64(rapid.SampledFrom([]int{1, 60, 3600, 86400}).Draw(t, "exp"))
				s.token = w.sign(tb, s.by, s.claims)
				tokens = append(tokens, s)
			},
			"show": func(t *rapid.T) {
				if len(tokens) == 0 {
					t.Skip("no token yet")
				}
				s := rapid.SampledFrom(tokens).Draw(t, "token")
				serial++
				s.claims["jti"] = serial
				id, err := remembering.User(request("Bearer " + s.token))
				want, wantErr := twin.User(request("Bearer " + w.sign(tb, s.by, s.claims)))
				if id != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Fatalf("remembered: %+v, %v; new: %+v, %v", id, err, want, wantErr)
				}
			},
			"wait": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.SampledFrom([]int{1, 11, 70, 700, 3601, 50000}).Draw(t, "s")) *
					time.Second)
			},
			"rotate": func(t *rapid.T) {
				w.hosts["securetoken.google.com"] = rapid.SampledFrom(signers[:2]).Draw(t, "to")
			},
			"outage": func(t *rapid.T) { w.setDown(rapid.Bool().Draw(t, "down")) },
		})
	})
}

// TestVerifyConcurrently presents a few tokens many times and many tokens once, all at the same time.
func TestVerifyConcurrently(t *testing.T) {
	w := newInternet(t)
	v := w.verifier(t, nil)
	var tokens []string
	for n := range 40 {
		claims := w.userClaims()
		claims["sub"] = fmt.Sprint("user", n)
		tokens = append(tokens, w.sign(t, w.users, claims))
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := range 200 {
				k := (n*7 + g) % len(tokens)
				if id, err := v.User(request("Bearer " + tokens[k])); err != nil || id.UID != fmt.Sprint("user", k) {
					t.Errorf("token %d is %+v, %v", k, id, err)
				}
			}
		})
	}
	wg.Wait()
}

// FuzzRemembered checks that no other token passes for one that is remembered.
func FuzzRemembered(f *testing.F) {
	w := newInternet(f)
	good := w.sign(f, w.users, w.userClaims())
	v := w.verifier(f, nil)
	for _, seed := range []string{good, good + "=", good[:len(good)-1] + "_", good + "\n", " " + good,
		good + "." + good,
		good[1:]} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := v.User(request("Bearer " + good)); err != nil {
			t.Fatal(err)
		}
		id, err := v.User(request("Bearer " + token))
		if (err == nil) != (token == good) || err != nil && id != (auth.Identity{}) {
			t.Errorf("%q is let in as %+v: %v", token, id, err)
		}
		refusal(t, err)
	})
}
