package auth_test

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/accounts/auth"
	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

type claimSet = map[string]any

func TestUserOfAGoodToken(t *testing.T) {
	w := newInternet(t)
	claims := w.userClaims()
	claims["auth_time"], claims["amr"] = w.now.Unix(), []string{"pwd", "otp"}
	got, err := w.verifier(t, nil).User(request("bearer " + w.sign(t, w.users, claims)))
	want := auth.Identity{UID: "userA", Email: "a@example.com", EmailVerified: true, Issuer: firebase,
		Auth: decision.Auth{Issuer: firebase, At: w.now, Methods: "pwd otp"}}
	if err != nil || got != want {
		t.Fatalf("got %+v, %v; want %+v", got, err, want)
	}
}

// TestUserClaims changes one claim of a valid token at a time. A nil value removes the claim.
func TestUserClaims(t *testing.T) {
	at := newInternet(t).now.Unix()
	cases := map[string]struct {
		change claimSet
		status int
	}{
		"nothing":                         {nil, 200},
		"issued within the skew":          {claimSet{"iat": at + 59, "auth_time": at + 59, "nbf": at + 59}, 200},
		"times with fractions":            {claimSet{"iat": float64(at) - 0.5, "exp": float64(at) + 10.5}, 200},
		"e-mail not verified":             {claimSet{"email_verified": false}, 200},
		"no e-mail":                       {claimSet{"email": nil, "email_verified": nil}, 200},
		"audience as a list of one":       {claimSet{"aud": []string{project}}, 200},
		"ours of two audiences, by azp":   {claimSet{"aud": []string{"other", project}, "azp": project}, 200},
		"ours of two audiences, no azp":   {claimSet{"aud": []string{"other", project}}, 401},
		"asked for by another party":      {claimSet{"azp": "other"}, 401},
		"a service account's token":       {claimSet{"azp": project, "email": "x@evil.iam.gserviceaccount.com"}, 401},
		"audiences without ours":          {claimSet{"aud": []string{"other", "third"}}, 401},
		"audience as a part of ours":      {claimSet{"aud": project[:4]}, 401},
		"audience in another case":        {claimSet{"aud": strings.ToUpper(project)}, 401},
		"audience as a number":            {claimSet{"aud": 7}, 401},
		"no audience":                     {claimSet{"aud": nil}, 401},
		"issuer with a slash":             {claimSet{"iss": firebase + "/"}, 401},
		"issuer without its scheme":       {claimSet{"iss": strings.TrimPrefix(firebase, "https://")}, 401},
		"no issuer":                       {claimSet{"iss": nil}, 401},
		"expired this second":             {claimSet{"exp": at}, 401},
		"expires in ten years":            {claimSet{"exp": at + 315360000}, 401},
		"exp as a string":                 {claimSet{"exp": "9999999999"}, 401},
		"exp beyond all numbers":          {claimSet{"exp": 1e300}, 401},
		"exp as an object":                {claimSet{"exp": claimSet{}}, 401},
		"no iat":                          {claimSet{"iat": nil}, 401},
		"iat in the future":               {claimSet{"iat": at + 61}, 401},
		"iat as a string":                 {claimSet{"iat": "1"}, 401},
		"auth_time in the future":         {claimSet{"auth_time": at + 61}, 401},
		"nbf in the future":               {claimSet{"nbf": at + 61}, 401},
		"no sub":                          {claimSet{"sub": nil}, 401},
		"sub as a number":                 {claimSet{"sub": 12}, 401},
		"sub of dots":                     {claimSet{"sub": ".."}, 401},
		"sub with a line end":             {claimSet{"sub": "userA\n"}, 401},
		"sub with a NUL":                  {claimSet{"sub": "user\x00A"}, 401},
		"sub beyond ASCII":                {claimSet{"sub": "usеrA"}, 401},
		"sub of 128 characters":           {claimSet{"sub": strings.Repeat("u", 128)}, 200},
		"sub of 129 characters":           {claimSet{"sub": strings.Repeat("u", 129)}, 401},
		"sub as other providers write it": {claimSet{"sub": "auth0|5f7c.8ec7-c33c:x@y+z"}, 200},
		"anonymous, by provider_id":       {claimSet{"provider_id": "anonymous"}, 403},
		"case-variant claim":              {claimSet{"sub": nil, "Sub": "userB"}, 401},
		"more than 8 KiB":                 {claimSet{"picture": strings.Repeat("p", 8<<10)}, 401},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newInternet(t)
			claims := w.userClaims()
			maps.Copy(claims, c.change)
			maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
			id, err := w.verifier(t, nil).User(request("Bearer " + w.sign(t, w.users, claims)))
			if got := status(err); got != c.status {
				t.Fatalf("got %d (%v), want %d", got, err, c.status)
			}
			if err != nil && id != (auth.Identity{}) {
				t.Errorf("an identity comes with the error: %+v", id)
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	w := newInternet(t)
	good := keys()["good"]
	kid := issuer.KeyID(good)
	cases := map[string]struct {
		header claimSet
		key    string
		want   int
	}{
		"as it should be": {claimSet{"alg": "RS256", "kid": kid}, "good", 200},
		"own key brought along": {claimSet{"alg": "RS256", "kid": kid, "jwk": claimSet{"kty": "oct", "k": "AAAA"}},
			"evil", 401},
		"no kid":                 {claimSet{"alg": "RS256"}, "good", 401},
		"unknown kid":            {claimSet{"alg": "RS256", "kid": "nobody"}, "good", 401},
		"kid as a number":        {claimSet{"alg": "RS256", "kid": 1}, "good", 401},
		"HS256":                  {claimSet{"alg": "HS256", "kid": kid}, "good", 401},
		"PS256":                  {claimSet{"alg": "PS256", "kid": kid}, "good", 401},
		"no alg":                 {claimSet{"kid": kid}, "good", 401},
		"an access token's type": {claimSet{"alg": "RS256", "kid": kid, "typ": "at+jwt"}, "good", 401},
		"crit is empty":          {claimSet{"alg": "RS256", "kid": kid, "crit": []string{}}, "good", 401},
		"b64 without crit":       {claimSet{"alg": "RS256", "kid": kid, "b64": true}, "good", 401},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := w.verifier(t, nil).User(
				request("Bearer " + forge(t, c.header, w.userClaims(), keys()[c.key], nil)))
			if got := status(err); got != c.want {
				t.Errorf("got %d (%v), want %d", got, err, c.want)
			}
		})
	}
}

func TestVerifyHeader(t *testing.T) {
	w := newInternet(t)
	good := w.sign(t, w.users, w.userClaims())
	head, rest, _ := strings.Cut(good, ".")
	payload, sig, _ := strings.Cut(rest, ".")
	for name, values := range map[string][]string{
		"two headers":       {"Bearer " + good, "Bearer " + good},
		"two in one":        {"Bearer " + good + ", Bearer " + good},
		"scheme alone":      {"Bearer"},
		"no scheme":         {good},
		"space behind":      {"Bearer " + good + " "},
		"padding":           {"Bearer " + good + "="},
		"signature missing": {"Bearer " + head + "." + payload + "."},
		"two parts":         {"Bearer " + head + "." + payload},
		"four parts":        {"Bearer " + good + "." + sig},
		"the JSON form": {`Bearer {"payload":"` + payload + `","protected":"` + head + `","signature":"` + sig +
			`"}`},
		"over 8 KiB":         {"Bearer " + head + "." + strings.Repeat("A", 8<<10) + "." + sig},
		"another last bit":   {"Bearer " + good[:len(good)-1] + "_"},
		"signature cut":      {"Bearer " + good[:len(good)-8]},
		"newline within":     {"Bearer " + head + "\n." + payload + "." + sig},
		"line end in scheme": {"Bearer\t" + good},
	} {
		if _, err := w.verifier(t, nil).User(request(values...)); status(err) != http.StatusUnauthorized {
			t.Errorf("%s: got %v, want a 401", name, err)
		}
	}
}

func TestMessagesOfRefusals(t *testing.T) {
	w := newInternet(t)
	claims := w.userClaims()
	claims["exp"] = w.now.Unix() - 10
	_, err := w.verifier(t, nil).User(request("Bearer " + w.sign(t, w.users, claims)))
	if err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("an expired token is answered by %v, which does not say so", err)
	}
	kid := issuer.KeyID(keys()["good"])
	_, err = w.verifier(t, nil).User(
		request("Bearer " + forge(t, claimSet{"alg": "RS256", "kid": kid}, claims, keys()["evil"], nil)))
	if err == nil || strings.Contains(err.Error(), "expired") {
		t.Errorf("a forged expired token is answered by %v, which tells of its claims", err)
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if strings.Contains(e.Error(), "a@example.com") || strings.Contains(e.Error(), project) {
			t.Errorf("the error repeats the token: %v", e)
		}
	}
}

func TestTenantAndAnonymous(t *testing.T) {
	cases := map[string]struct {
		config   func(*auth.Config)
		firebase claimSet
		status   int
	}{
		"the tenant":         {func(c *auth.Config) { c.Tenant = "t1" }, claimSet{"tenant": "t1"}, 200},
		"another tenant":     {func(c *auth.Config) { c.Tenant = "t1" }, claimSet{"tenant": "t2"}, 403},
		"no tenant in token": {func(c *auth.Config) { c.Tenant = "t1" }, claimSet{}, 403},
		"no tenant wanted":   {nil, claimSet{"tenant": "t1"}, 403},
		"anonymous":          {nil, claimSet{"sign_in_provider": "anonymous"}, 403},
		"anonymous is allowed": {func(c *auth.Config) { c.AllowAnonymous = true },
			claimSet{"sign_in_provider": "anonymous"}, 200},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newInternet(t)
			claims := w.userClaims()
			claims["firebase"] = c.firebase
			_, err := w.verifier(t, c.config).User(request("Bearer " + w.sign(t, w.users, claims)))
			if got := status(err); got != c.status {
				t.Errorf("got %d (%v), want %d", got, err, c.status)
			}
		})
	}
}

// TestDomains checks the allowed domains of verified addresses, which matter if anyone can have an account with the
// issuer.
func TestDomains(t *testing.T) {
	cases := map[string]struct {
		claims claimSet
		status int
	}{
		"of the domain":        {claimSet{"email": "ana@acme.example", "email_verified": true}, 200},
		"of the other":         {claimSet{"email": "ana@b.example", "email_verified": true}, 200},
		"in capitals":          {claimSet{"email": "Ana@ACME.example", "email_verified": true}, 200},
		"another domain":       {claimSet{"email": "ana@evil.example", "email_verified": true}, 403},
		"a domain below":       {claimSet{"email": "ana@mail.acme.example", "email_verified": true}, 403},
		"a domain above":       {claimSet{"email": "ana@example", "email_verified": true}, 403},
		"a longer domain":      {claimSet{"email": "ana@evilacme.example", "email_verified": true}, 403},
		"a dot behind":         {claimSet{"email": "ana@acme.example.", "email_verified": true}, 403},
		"two at signs":         {claimSet{"email": "ana@evil.example@acme.example", "email_verified": true}, 403},
		"a quoted at sign":     {claimSet{"email": `"ana@evil.example"@acme.example`, "email_verified": true}, 403},
		"a look-alike":         {claimSet{"email": "ana@асme.example", "email_verified": true}, 403},
		"no name":              {claimSet{"email": "@acme.example", "email_verified": true}, 403},
		"no address":           {claimSet{"email_verified": true}, 403},
		"not verified":         {claimSet{"email": "ana@acme.example", "email_verified": false}, 403},
		"nothing of verifying": {claimSet{"email": "ana@acme.example"}, 403},
		"verified in a string": {claimSet{"email": "ana@acme.example", "email_verified": "true"}, 403},
		"another domain claims": {claimSet{"email": "ana@evil.example", "email_verified": true, "hd": "acme.example"},
			403},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newInternet(t)
			claims := w.userClaims()
			delete(claims, "email")
			delete(claims, "email_verified")
			maps.Copy(claims, c.claims)
			token := w.sign(t, w.users, claims)
			of := func(cfg *auth.Config) { cfg.Domains = []string{"acme.example", "b.example"} }
			_, err := w.verifier(t, of).User(request("Bearer " + token))
			if got := status(err); got != c.status {
				t.Errorf("got %d (%v), want %d", got, err, c.status)
			}
			if _, err := w.verifier(t, nil).User(request("Bearer " + token)); err != nil {
				t.Errorf("where no domain is named: %v", err)
			}
		})
	}
}

func TestGoogleAsUsersIssuer(t *testing.T) {
	w := newInternet(t)
	v := w.verifier(t, func(c *auth.Config) { c.Issuer = "accounts.google.com" })
	for spelling, want := range map[string]int{"https://accounts.google.com": 200, "accounts.google.com": 200,
		"http://accounts.google.com": 401} {
		claims := w.userClaims()
		claims["iss"], claims["azp"] = spelling, project
		if _, err := v.User(request("Bearer " + w.sign(t, w.pushers, claims))); status(err) != want {
			t.Errorf("issuer %s: got %v, want %d", spelling, err, want)
		}
	}
	// Any service account can get a token from Google for this service's audience.
	stranger := w.pushClaims()
	stranger["aud"], stranger["email"] = project, "me@example.com"
	if _, err := v.User(request("Bearer " + w.sign(t, w.pushers, stranger))); status(err) != 401 {
		t.Errorf("a stranger's service account is a user: %v", err)
	}
}

func TestSettingsRefused(t *testing.T) {
	for name, cfg := range map[string]auth.Config{
		"no audience":       {Issuer: firebase},
		"no issuer":         {Audience: project},
		"plain http":        {Issuer: "http://issuer.example", Audience: project},
		"issuer with query": {Issuer: firebase + "?x=1", Audience: project},
		"no host":           {Issuer: "https:///x", Audience: project},
	} {
		if _, err := auth.New(cfg); err == nil {
			t.Errorf("%s: is accepted", name)
		}
	}
	for _, local := range []string{"http://127.0.0.1:8080", "http://localhost:1/dev", "http://[::1]:2"} {
		if _, err := auth.New(auth.Config{Issuer: local, Audience: project}); err != nil {
			t.Errorf("a local issuer: %v", err)
		}
	}
}

func TestErrorClasses(t *testing.T) {
	w := newInternet(t)
	_, err := w.verifier(t, nil).User(request())
	if !fault.Is(err, fault.Auth, fault.CodeUnauthenticated) {
		t.Errorf("got %v; want error %v %v", err, fault.Auth, fault.CodeUnauthenticated)
	}
}
