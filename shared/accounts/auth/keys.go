package auth

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"

	"github.com/countersign-run/countersign/shared/base/outbound"
)

const (
	fetchTimeout = 10 * time.Second
	fetchLimit   = 1 << 20          // bytes of a discovery document or a key set
	refetchEvery = 10 * time.Second // minimum time between fetches, however many unknown key IDs clients send
	retryEvery   = time.Second      // minimum time between attempts while the issuer does not answer
	// maximum wait that an issuer can ask for, because without its keys no user can sign in
	mostPaused = 5 * time.Minute
	// age at which keys are fetched again, because the issuer may have withdrawn some
	freshFor   = time.Hour
	keptFor    = 24 * time.Hour // after this time, keys are dropped even if the issuer does not answer
	minKeyBits = 2048
)

var errUnknownKey = errors.New("auth: the issuer has no such key")

// keyring holds one issuer's public keys. It fetches them when they are first needed.
type keyring struct {
	issuer string
	client *http.Client
	now    func() time.Time
	flight singleflight.Group

	mu      sync.Mutex
	keySet  string // URL of the keys, once discovery has returned it
	keys    map[string]*rsa.PublicKey
	fetched time.Time // when keys were last fetched
	tried   time.Time // time of the last attempt
	failure error     // error of the last attempt, if it failed
}

func newKeyring(issuer string, client *http.Client, now func() time.Time) *keyring {
	if client == nil {
		client = &http.Client{Timeout: fetchTimeout}
	}
	bounded := *client
	bounded.Transport = outbound.Limit(client.Transport, fetchLimit)
	return &keyring{issuer: issuer, client: outbound.PatientFor(&bounded, now, mostPaused), now: now}
}

// key returns the key with the ID, errUnknownKey, or an error that says that the issuer cannot be reached.
func (k *keyring) key(ctx context.Context, id string) (*rsa.PublicKey, error) {
	key, fresh := k.cached(id)
	if key != nil && fresh {
		return key, nil
	}
	err := k.refresh(ctx)
	if key, _ := k.cached(id); key != nil {
		return key, nil
	}
	if err != nil {
		return nil, unavailable(err)
	}
	return nil, errUnknownKey
}

func (k *keyring) cached(id string) (key *rsa.PublicKey, fresh bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	age := k.now().Sub(k.fetched)
	if age > keptFor {
		return nil, false
	}
	return k.keys[id], age <= freshFor
}

// refresh fetches the keys, once for all concurrent callers. A caller that gives up does not cancel the fetch for the
// others.
func (k *keyring) refresh(ctx context.Context) error {
	done := k.flight.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
		defer cancel()
		return nil, k.fetch(ctx)
	})
	select {
	case <-ctx.Done():
		return ctx.Err()
	case result := <-done:
		return result.Err
	}
}

// fetch is called by one goroutine at a time.
func (k *keyring) fetch(ctx context.Context) error {
	if failure, wait := k.mustWait(); wait {
		return failure
	}
	keys, err := k.download(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failure = err
	if err == nil {
		k.keys, k.fetched = keys, k.now()
	}
	return err
}

// mustWait reports whether the last attempt was too recent, and returns its error. Otherwise it records a new attempt.
func (k *keyring) mustWait() (failure error, wait bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	pause := refetchEvery
	if k.failure != nil {
		pause = retryEvery
	}
	now := k.now()
	if !k.tried.IsZero() && now.Sub(k.tried) < pause {
		return k.failure, true
	}
	k.tried = now
	return nil, false
}

func (k *keyring) download(ctx context.Context) (map[string]*rsa.PublicKey, error) {
	if k.keySet == "" { // written and read within one flight at a time
		provider, err := oidc.NewProvider(oidc.ClientContext(ctx, k.client), k.issuer)
		if err != nil {
			return nil, fmt.Errorf("auth: discovery of %s: %w", k.issuer, err)
		}
		var doc struct {
			KeySet string `json:"jwks_uri"`
		}
		if err := provider.Claims(&doc); err != nil || !isSecure(doc.KeySet) {
			return nil, fmt.Errorf("auth: discovery of %s names no key set that can be fetched safely", k.issuer)
		}
		k.keySet = doc.KeySet
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, k.keySet, nil)
	if err != nil {
		return nil, err
	}
	resp, err := k.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("auth: keys of %s: %w", k.issuer, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("auth: keys of %s: status %d", k.issuer, resp.StatusCode)
	}
	return readKeys(resp.Body)
}

// readKeys returns the RSA signing keys of a key set and ignores other keys (RFC 7517 §5).
func readKeys(body io.Reader) (map[string]*rsa.PublicKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.NewDecoder(body).Decode(&set); err != nil {
		return nil, fmt.Errorf("auth: the key set cannot be read: %w", err)
	}
	keys := map[string]*rsa.PublicKey{}
	for _, raw := range set.Keys {
		var jwk jose.JSONWebKey
		if jwk.UnmarshalJSON(raw) != nil {
			continue
		}
		key, ok := jwk.Key.(*rsa.PublicKey)
		forSigning := (jwk.Use == "" || jwk.Use == "sig") && (jwk.Algorithm == "" || jwk.Algorithm == oidc.RS256)
		if ok && forSigning && jwk.KeyID != "" && key.N.BitLen() >= minKeyBits {
			keys[jwk.KeyID] = key
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("auth: the key set contains no RSA key for signatures")
	}
	return keys, nil
}

// isSecure reports whether a response from the address can be trusted to come from it.
func isSecure(address string) bool {
	u, err := url.Parse(address)
	return err == nil && outbound.Secure(u) && u.RawQuery == "" && u.Fragment == ""
}
