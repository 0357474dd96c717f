// Package issuer implements a small OpenID Connect issuer for one machine. It publishes its keys by discovery and signs
// ID tokens with a real RSA key, so that the tokens of scripts/dev and the tests are verified like Firebase's and
// Google's. No setting skips the verification of a signature; only the issuer differs. The package is not part of a
// deployed binary.
package issuer

import (
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/countersign-run/countersign/shared/testkit/fakeoauth"
)

const (
	pushLifetime = time.Hour // of a push token, as Google's
	maxSigned    = 100       // tokens that an issuer keeps
)

// Issuer signs tokens and publishes the key to check them with. It is safe for concurrent use.
type Issuer struct {
	url    string
	now    func() time.Time
	public jose.JSONWebKeySet
	signer jose.Signer
	mux    *http.ServeMux

	mu   sync.Mutex
	kept map[string]string // tokens by their payload

	codes    fakeoauth.Codes[grant]
	served   bool      // whether the endpoints for sign-in are
	console  *Client   // nil if users do not sign in by browser
	programs *programs // nil if there are no agents of other programs
}

// New returns an issuer with the key (see [NewKey] and [OpenKey]). issuerURL is the URL of ServeHTTP and the tokens'
// iss, without a final slash. If it has a path, ServeHTTP answers below that path.
func New(issuerURL string, key *rsa.PrivateKey, now func() time.Time) (*Issuer, error) {
	u, err := url.Parse(issuerURL)
	if err != nil || u.Host == "" || strings.HasSuffix(issuerURL, "/") {
		return nil, fmt.Errorf("issuer: %q is not an address such as http://127.0.0.1:8080", issuerURL)
	}
	public := jose.JSONWebKey{Key: &key.PublicKey, KeyID: KeyID(key), Algorithm: string(jose.RS256), Use: "sig"}
	private := jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: public.KeyID}}
	signer, err := jose.NewSigner(private, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return nil, fmt.Errorf("issuer: %w", err)
	}
	i := &Issuer{url: issuerURL, now: now, signer: signer, public: jose.JSONWebKeySet{Keys: []jose.JSONWebKey{public}},
		kept: map[string]string{}}
	i.mux = http.NewServeMux()
	i.mux.HandleFunc("GET "+u.Path+"/.well-known/openid-configuration", i.discovery)
	i.mux.HandleFunc("GET "+u.Path+"/jwks", i.jwks)
	return i, nil
}

// path returns the path of the issuer's URL.
func (i *Issuer) path() string {
	u, err := url.Parse(i.url)
	if err != nil {
		panic("issuer: " + err.Error()) // New has parsed it
	}
	return u.Path
}

// URL returns the issuer's URL, which is the iss of its tokens.
func (i *Issuer) URL() string { return i.url }

// ServeHTTP answers discovery (OpenID Connect Discovery 1.0 §4) and the key set (RFC 7517 §5) below the issuer's path.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) { i.mux.ServeHTTP(w, r) }

// Token returns a signed ID token of a user who has just signed in with a verified e-mail address. A negative ttl makes
// an expired one.
func (i *Issuer) Token(uid, email, audience string, ttl time.Duration) (string, error) {
	if uid == "" || audience == "" {
		return "", errors.New("issuer: a token needs a uid and an audience")
	}
	now := i.now()
	return i.Sign(map[string]any{
		"iss": i.url, "aud": audience, "sub": uid, "email": email, "email_verified": email != "",
		"iat": now.Unix(), "auth_time": now.Unix(), "exp": now.Add(ttl).Unix(),
	})
}

// PushToken returns a token like those that Pub/Sub and Cloud Scheduler send with a push request: the claims of a
// Google service account's ID token (https://docs.cloud.google.com/pubsub/docs/authenticate-push-subscriptions). It is
// valid for an hour.
func (i *Issuer) PushToken(email, audience string) (string, error) {
	if email == "" || audience == "" {
		return "", errors.New("issuer: a push token needs a service account and an audience")
	}
	now := i.now()
	const account = "100000000000000000001" // the numeric id of a service account is both its sub and its azp
	return i.Sign(map[string]any{
		"iss": i.url, "aud": audience, "sub": account, "azp": account, "email": email, "email_verified": true,
		"iat": now.Unix(), "exp": now.Add(pushLifetime).Unix(),
	})
}

// Sign signs the claims unchanged with RS256, with the key's id as kid. RS256 gives equal claims equal signatures, so a
// token that Sign keeps is the same as a new one. A signature takes a millisecond, and a client that polls requests the
// same token many times a second.
func (i *Issuer) Sign(claims map[string]any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("issuer: %w", err)
	}
	if token, ok := i.signed(string(payload)); ok {
		return token, nil
	}
	signed, err := i.signer.Sign(payload)
	if err != nil {
		return "", fmt.Errorf("issuer: %w", err)
	}
	token, err := signed.CompactSerialize()
	if err == nil {
		i.keep(string(payload), token)
	}
	return token, err
}

func (i *Issuer) signed(payload string) (token string, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	token, ok = i.kept[payload]
	return token, ok
}

func (i *Issuer) keep(payload, token string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.kept) >= maxSigned {
		clear(i.kept)
	}
	i.kept[payload] = token
}

// verified returns the payload of a token that the issuer signed.
func (i *Issuer) verified(token string) (payload []byte, err error) {
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		return nil, err
	}
	return signed.Verify(&i.public.Keys[0])
}

func (i *Issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	about := map[string]any{
		"issuer": i.url, "jwks_uri": i.url + "/jwks", "id_token_signing_alg_values_supported": []string{"RS256"},
		"response_types_supported": []string{"id_token"}, "subject_types_supported": []string{"public"},
	}
	if i.served {
		about["authorization_endpoint"], about["token_endpoint"] = i.url+"/authorize", i.url+"/token"
		about["response_types_supported"] = []string{"code", "id_token"}
		about["code_challenge_methods_supported"] = []string{"S256"}
		about["token_endpoint_auth_methods_supported"] = []string{"none"}
		about["grant_types_supported"] = []string{"authorization_code", "refresh_token"}
		about["authorization_response_iss_parameter_supported"] = true // RFC 9207
	}
	if i.programs != nil {
		about["registration_endpoint"] = i.url + "/register"
	}
	answer(w, about)
}

func (i *Issuer) jwks(w http.ResponseWriter, _ *http.Request) { answer(w, i.public) }

func answer(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "the answer could not be written as JSON", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // a client that disconnected is not an error
}
