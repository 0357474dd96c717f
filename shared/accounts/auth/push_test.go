package auth_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/accounts/auth"
)

// TestPushClaims changes one claim of a valid push token at a time. A nil value removes the claim.
func TestPushClaims(t *testing.T) {
	cases := map[string]struct {
		change claimSet
		status int
	}{
		"nothing":                     {nil, 200},
		"issuer without its scheme":   {claimSet{"iss": "accounts.google.com"}, 200},
		"another issuer":              {claimSet{"iss": "https://evil.example"}, 401},
		"e-mail in another case":      {claimSet{"email": strings.ToUpper(pushAccount)}, 401},
		"e-mail with a tail":          {claimSet{"email": pushAccount + ".evil.example"}, 401},
		"another service account":     {claimSet{"email": "push@evil.iam.gserviceaccount.com"}, 401},
		"e-mail not verified":         {claimSet{"email_verified": false}, 401},
		"e-mail verified as a string": {claimSet{"email_verified": "true"}, 401},
		"no word on the e-mail":       {claimSet{"email_verified": nil}, 401},
		"audience with a slash less":  {claimSet{"aud": strings.TrimSuffix(pushTarget, "/")}, 401},
		"an audience as prefix":       {claimSet{"aud": pushTarget + "x"}, 401},
		"iat in the future":           {claimSet{"iat": newInternet(t).now.Unix() + 3600}, 401},
		"expired":                     {claimSet{"exp": newInternet(t).now.Unix() - 1}, 401},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newInternet(t)
			claims := w.pushClaims()
			maps.Copy(claims, c.change)
			maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
			if err := w.push(t, nil).Check(request("Bearer " + w.sign(t, w.pushers, claims))); status(err) != c.status {
				t.Errorf("got %d (%v), want %d", status(err), err, c.status)
			}
		})
	}
}

func TestPushTokenAsUserToken(t *testing.T) {
	w := newInternet(t)
	user, push := w.sign(t, w.users, w.userClaims()), w.sign(t, w.pushers, w.pushClaims())
	if err := w.push(t, nil).Check(request("Bearer " + user)); status(err) != http.StatusUnauthorized {
		t.Errorf("a user's token at the resume function: %v", err)
	}
	if _, err := w.verifier(t, nil).User(request("Bearer " + push)); status(err) != http.StatusUnauthorized {
		t.Errorf("a push token as a user's: %v", err)
	}
	// The local issuer signs both kinds of token: the audience and the account still distinguish them.
	w.hosts["securetoken.google.com"] = w.users
	local := w.push(t, func(c *auth.PushConfig) { c.Issuer = firebase })
	pushed, err := w.users.PushToken(pushAccount, pushTarget)
	if err != nil {
		t.Fatal(err)
	}
	if err := local.Check(request("Bearer " + pushed)); err != nil {
		t.Errorf("a local push token: %v", err)
	}
	misused, err := w.users.PushToken(pushAccount, project)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.verifier(t, nil).User(request("Bearer " + misused)); status(err) != http.StatusUnauthorized {
		t.Errorf("a local service account as a user: %v", err)
	}
}

func TestPushVerifiedByThePlatform(t *testing.T) {
	cases := map[string]struct {
		change    claimSet
		audience  string
		signature string
		header    string
		status    int
	}{
		"as Cloud Run hands it on":   {signature: "SIGNATURE_REMOVED_BY_GOOGLE", audience: pushTarget, status: 200},
		"no signature":               {audience: pushTarget, status: 200},
		"audience left to Cloud Run": {change: claimSet{"aud": "https://sweep.example"}, status: 200},
		"another audience": {change: claimSet{"aud": "https://sweep.example"}, audience: pushTarget,
			status: 401},
		"another service account":        {change: claimSet{"email": "x@evil.iam.gserviceaccount.com"}, status: 401},
		"e-mail not verified":            {change: claimSet{"email_verified": false}, status: 401},
		"another issuer":                 {change: claimSet{"iss": "https://evil.example"}, status: 401},
		"Cloud Run read another header":  {signature: "SIGNATURE_REMOVED_BY_GOOGLE", header: "Bearer x", status: 401},
		"Cloud Run read an empty header": {signature: "SIGNATURE_REMOVED_BY_GOOGLE", header: " ", status: 401},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newInternet(t)
			claims := w.pushClaims()
			maps.Copy(claims, c.change)
			p := w.push(t, func(cfg *auth.PushConfig) {
				cfg.VerifiedBy, cfg.OnCloudRun, cfg.Audience = auth.ByPlatform, true, c.audience
			})
			req := request("Bearer " + forge(t, claimSet{"alg": "RS256", "kid": "x"}, claims, nil, &c.signature))
			if c.header != "" {
				req.Header.Set("X-Serverless-Authorization", c.header)
			}
			if err := p.Check(req); status(err) != c.status {
				t.Errorf("got %d (%v), want %d", status(err), err, c.status)
			}
			if len(w.requests) != 0 {
				t.Errorf("keys were fetched: %v", w.requests)
			}
		})
	}
}

func TestPushSettingsRefused(t *testing.T) {
	good := auth.PushConfig{Audience: pushTarget, ServiceAccount: pushAccount}
	for name, change := range map[string]func(*auth.PushConfig){
		"no audience":              func(c *auth.PushConfig) { c.Audience = "" },
		"no account":               func(c *auth.PushConfig) { c.ServiceAccount = "" },
		"any account":              func(c *auth.PushConfig) { c.ServiceAccount = "*" },
		"any account of a project": func(c *auth.PushConfig) { c.ServiceAccount = "*@p.iam.gserviceaccount.com" },
		"two accounts":             func(c *auth.PushConfig) { c.ServiceAccount = "a@p.example,b@p.example" },
		"platform, but not there":  func(c *auth.PushConfig) { c.VerifiedBy = auth.ByPlatform },
		"verified by nobody":       func(c *auth.PushConfig) { c.VerifiedBy = "none" },
		"issuer without TLS":       func(c *auth.PushConfig) { c.Issuer = "http://accounts.google.com" },
	} {
		cfg := good
		change(&cfg)
		if _, err := auth.NewPush(cfg); err == nil {
			t.Errorf("%s: is accepted", name)
		}
	}
	if _, err := auth.NewPush(good); err != nil {
		t.Errorf("the good settings: %v", err)
	}
}
