package linking

import (
	"crypto/rand"
	"encoding/base64"
	"io"
	"net/http"
	"time"
)

func withDefaults(cfg Config) Config {
	client := http.Client{Timeout: time.Minute}
	if cfg.HTTPClient != nil {
		client = *cfg.HTTPClient
	}
	// A redirect would carry the client's secret, a code or a refresh token to another host.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	cfg.HTTPClient = &client
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	return cfg
}

// secret returns 256 random bits as 43 characters that are safe in a URL and in a cookie, and valid as a PKCE verifier
// (RFC 7636 §4.1).
func secret(random io.Reader) (string, error) {
	var bits [32]byte
	if _, err := io.ReadFull(random, bits[:]); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(bits[:]), nil
}
