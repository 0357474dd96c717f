package auth

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/memo"
	"github.com/countersign-run/countersign/shared/base/outbound"
)

// The two spellings of Google's issuer (https://developers.google.com/identity/openid-connect/openid-connect).
const (
	google      = "https://accounts.google.com"
	googleShort = "accounts.google.com"
)

// checker checks the tokens of users and push tokens.
type checker struct {
	keys     *keyring
	audience string // empty if the platform has checked it
	now      func() time.Time
	seen     *memory
}

func newChecker(issuer, audience string, client *http.Client, now func() time.Time) (*checker, error) {
	if issuer == googleShort {
		issuer = google
	}
	if !isSecure(issuer) {
		return nil, fmt.Errorf("auth: the issuer %q must be an https address (http only on a loopback address)", issuer)
	}
	if now == nil {
		now = time.Now
	}
	return &checker{keys: newKeyring(issuer, client, now), audience: audience, now: now,
		seen: memo.New[[sha256.Size]byte, verified](halfSeen)}, nil
}

// verify returns the claims of a token that is genuine, for this service, and valid now. Its messages help developers
// and reveal nothing to attackers: they contain details only if the signature is valid.
func (c *checker) verify(ctx context.Context, raw string) (got claims, err error) {
	// A token that makes a library panic is invalid. Each library used below has panicked on some token.
	defer func() {
		if recover() != nil {
			got, err = claims{}, errInvalid()
		}
	}()
	hash := sha256.Sum256([]byte(raw))
	if seen, ok := c.seen.Get(hash); ok && c.now().Before(seen.until) {
		key, err := c.key(ctx, seen.keyID)
		if err != nil {
			return claims{}, err
		}
		if key.Equal(seen.key) {
			return seen.claims, c.checkClaims(seen.claims)
		}
	}
	head, _, signature, ok := split(raw)
	var h header
	if !ok || len(signature) == 0 || json.Unmarshal(head, &h) != nil || !h.usable() {
		return claims{}, unauthenticated("This is not an ID token signed with RS256.")
	}
	key, err := c.key(ctx, h.KeyID)
	if err != nil {
		return claims{}, err
	}
	if got, err = c.signed(ctx, raw, key); err != nil {
		return claims{}, err
	}
	c.seen.Put(hash, verified{h.KeyID, key, got, c.now().Add(seenFor)})
	return got, c.checkClaims(got)
}

// key returns the issuer's key with the ID. It returns AuthError unauthenticated for an unknown ID.
func (c *checker) key(ctx context.Context, id string) (*rsa.PublicKey, error) {
	key, err := c.keys.key(ctx, id)
	if errors.Is(err, errUnknownKey) {
		return nil, errInvalid()
	}
	return key, err
}

// signed checks the token with go-oidc and the key that the token's header names. It does not use go-oidc's own key
// set, which fetches again for each unknown key ID and never drops a key that its issuer has withdrawn.
func (c *checker) signed(ctx context.Context, raw string, key crypto.PublicKey) (claims, error) {
	set := &oidc.StaticKeySet{PublicKeys: []crypto.PublicKey{key}}
	cfg := &oidc.Config{ClientID: c.audience, SupportedSigningAlgs: []string{oidc.RS256}, Now: c.now}
	token, err := oidc.NewVerifier(c.keys.issuer, set, cfg).Verify(ctx, raw)
	var expired *oidc.TokenExpiredError
	if errors.As(err, &expired) {
		return claims{}, expiredError()
	}
	if err != nil { // not wrapped, because it quotes claims
		return claims{}, errInvalid()
	}
	var payload jsontext.Value
	var got claims
	if token.Claims(&payload) != nil || json.Unmarshal(payload, &got) != nil {
		return claims{}, unauthenticated("The ID token's claims cannot be read.")
	}
	return got, nil
}

// checkClaims checks the claims, including issuer and audience. It is the only check of a push token whose signature
// the platform has checked and removed.
func (c *checker) checkClaims(got claims) error {
	if got.Issuer != c.keys.issuer && (c.keys.issuer != google || got.Issuer != googleShort) {
		return errInvalid()
	}
	if c.audience != "" && !slices.Contains(got.Audience, c.audience) {
		return errInvalid()
	}
	switch err := got.checkTimes(c.now()); {
	case errors.Is(err, errExpired):
		return expiredError()
	case err != nil:
		return unauthenticated("The ID token's times are not acceptable (" + err.Error() + ").")
	}
	return nil
}

var errNoAudience = errors.New("auth: the audience is empty; set one, or any application's token would be accepted")

func errInvalid() error {
	return unauthenticated("The ID token is not valid here: its signature, issuer or audience is not what this " +
		"service accepts.")
}

func expiredError() error {
	return unauthenticated("The ID token has expired; please get a fresh one.")
}

func unavailable(err error) error {
	after := 5 * time.Second
	if paused := new(outbound.Paused); errors.As(err, &paused) {
		after = max(after, paused.After)
	}
	return fault.New(fault.Tool, "issuer_unavailable",
		"The sign-in service cannot be reached just now; please try again in a moment.").After(after).Because(err)
}
