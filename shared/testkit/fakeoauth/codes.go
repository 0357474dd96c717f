package fakeoauth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"sync"
	"time"
)

// CodeLifetime is how long a code is valid.
const CodeLifetime = time.Minute

const maxCodes = 1000 // not yet redeemed

// Codes are authorization codes (RFC 6749 §4.1) with PKCE by S256 (RFC 7636), each with a value of the caller. A code
// is valid once. The zero value is ready for use.
type Codes[T any] struct {
	mu    sync.Mutex
	given map[string]code[T]
}

type code[T any] struct {
	what      T
	challenge string
	until     time.Time
}

// Give returns a code, and drops expired ones.
func (c *Codes[T]) Give(what T, challenge string, now time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.given == nil {
		c.given = map[string]code[T]{}
	}
	for text, old := range c.given {
		if !now.Before(old.until) || len(c.given) >= maxCodes {
			delete(c.given, text)
		}
	}
	text := rand.Text()
	c.given[text] = code[T]{what, challenge, now.Add(CodeLifetime)}
	return text
}

// Take drops a code and returns its value if the code is valid and the verifier matches the challenge.
func (c *Codes[T]) Take(text, verifier string, now time.Time) (what T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	given, ok := c.given[text]
	delete(c.given, text)
	sum := sha256.Sum256([]byte(verifier))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	return given.what, ok && now.Before(given.until) &&
		subtle.ConstantTimeCompare([]byte(challenge), []byte(given.challenge)) == 1
}
