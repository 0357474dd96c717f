package hostile

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha256" // for crypto.Hash
	_ "crypto/sha512" // also for crypto.Hash
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

// The issuers at their real addresses.
const (
	project    = "demo-project"
	userIssuer = "https://securetoken.google.com/" + project
	pushIssuer = "https://accounts.google.com"
)

// internet is everything that this process can reach: itself, and Google's two issuers, which a local server simulates.
// Attempts to reach anything else are refused and recorded.
type internet struct {
	good, evil *rsa.PrivateKey
	issuers    *http.Server

	mu      sync.Mutex
	foreign []string
}

// goOffline replaces the real internet with a simulated one for the whole process. Close stops its servers.
func goOffline() (*internet, error) {
	for _, name := range proxied { // any use of a proxy fails
		if err := os.Setenv(name, proxy); err != nil {
			return nil, err
		}
	}
	good, e1 := issuer.NewKey()
	evil, e2 := issuer.NewKey()
	if err := errors.Join(e1, e2); err != nil {
		return nil, err
	}
	users, e1 := issuer.New(userIssuer, good, time.Now)
	pushers, e2 := issuer.New(pushIssuer, good, time.Now)
	ln, e3 := net.Listen("tcp", "127.0.0.1:0")
	if err := errors.Join(e1, e2, e3); err != nil {
		return nil, err
	}
	hosts := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Host, "securetoken.") {
			users.ServeHTTP(w, r)
			return
		}
		pushers.ServeHTTP(w, r)
	})
	server := &http.Server{Handler: hosts, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(ln) }() // it returns on Close
	net := &internet{good: good, evil: evil, issuers: server}
	net.install(ln.Addr().String())
	return net, nil
}

// Close stops the issuers.
func (n *internet) Close() error { return n.issuers.Close() }

// install routes the process's connections through the internet.
func (n *internet) install(issuers string) {
	var d net.Dialer
	t := http.DefaultTransport.(*http.Transport)
	t.Proxy = nil
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(addr)
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
			return nil, n.refuse(addr)
		}
		return d.DialContext(ctx, network, addr)
	}
	t.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr != "securetoken.google.com:443" && addr != "accounts.google.com:443" {
			return nil, n.refuse(addr)
		}
		return d.DialContext(ctx, network, issuers) // without TLS, because the dialer itself selects the server
	}
}

func (n *internet) refuse(addr string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.foreign = append(n.foreign, addr)
	return fmt.Errorf("hostile: nothing may connect to %s", addr)
}

// reached returns the foreign addresses that the process tried to reach.
func (n *internet) reached() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.foreign
}

// userClaims returns the claims of a valid user token.
func userClaims(uid string, now time.Time) map[string]any {
	at := now.Unix()
	return map[string]any{"iss": userIssuer, "aud": project, "sub": uid, "email": testkit.Address(uid),
		"email_verified": true,
		"iat":            at, "auth_time": at, "exp": at + 3600,
		"firebase": map[string]any{"sign_in_provider": "password"}}
}

// pushClaims returns the claims of Pub/Sub's and the scheduler's tokens.
func pushClaims(now time.Time) map[string]any {
	at := now.Unix()
	return map[string]any{"iss": pushIssuer, "aud": testkit.PushAudience, "sub": "1234567890", "azp": "1234567890",
		"email": testkit.PushAccount, "email_verified": true, "iat": at, "exp": at + 3600}
}

// sign returns a genuine token.
func (n *internet) sign(claims map[string]any) (string, error) {
	return n.jwt(map[string]any{"claims": map[string]any{}, "key": "good"}, claims)
}

// jwt returns the token of a $jwt. Its claims replace those of a valid token; null removes a claim. The header is as
// given, where kid k1 is the published key. The token is signed with the key by the header's alg, or has sig instead of
// a signature. A key with any name except good is not published.
func (n *internet) jwt(spec, base map[string]any) (string, error) {
	header, ok := spec["header"].(map[string]any)
	if !ok {
		header = map[string]any{"alg": "RS256", "kid": "k1", "typ": "JWT"}
	}
	claims := maps.Clone(base)
	given, _ := spec["claims"].(map[string]any)
	for name, v := range given {
		if at, ok := v.(time.Time); ok {
			v = at.Unix()
		}
		if claims[name] = v; v == nil {
			delete(claims, name)
		}
	}
	for name := range spec {
		if name != "header" && name != "claims" && name != "key" && name != "sig" {
			return "", unknown("$jwt with %q", name)
		}
	}
	if header["kid"] == "k1" {
		header = maps.Clone(header)
		header["kid"] = issuer.KeyID(n.good)
	}
	text := base64url(jsonOf(header)) + "." + base64url(jsonOf(claims))
	if sig, ok := spec["sig"]; ok {
		return text + "." + textOf(sig), nil
	}
	key := n.evil
	if spec["key"] == "good" {
		key = n.good
	}
	sig, err := n.signature(textOf(header["alg"]), key, text)
	return text + "." + base64url(string(sig)), err
}

func base64url(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

var hashes = map[string]crypto.Hash{"256": crypto.SHA256, "384": crypto.SHA384, "512": crypto.SHA512}

// signature signs with the named algorithm. The key of HS is the public key, which every client knows.
func (n *internet) signature(alg string, key *rsa.PrivateKey, text string) ([]byte, error) {
	family, size := alg, ""
	if len(alg) == 5 {
		family, size = alg[:2], alg[2:]
	}
	h, ok := hashes[size]
	if !ok {
		family, h = "RS", crypto.SHA256 // an algorithm that does not exist
	}
	hash := h.New()
	hash.Write([]byte(text))
	sum := hash.Sum(nil)
	switch family {
	case "HS":
		der, err := x509.MarshalPKIXPublicKey(&n.good.PublicKey)
		mac := hmac.New(h.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
		mac.Write([]byte(text))
		return mac.Sum(nil), err
	case "PS":
		return rsa.SignPSS(rand.Reader, key, h, sum, nil)
	case "ES":
		return ecdsaSignature(sum)
	}
	return rsa.SignPKCS1v15(rand.Reader, key, h, sum)
}

func ecdsaSignature(sum []byte) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	r, s, err := ecdsa.Sign(rand.Reader, key, sum)
	if err != nil {
		return nil, err
	}
	return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...), nil
}
