package auth

import (
	"crypto/rsa"
	"crypto/sha256"
	"sync"
	"time"
)

const (
	maxSeen = 1000             // tokens in each half of a memory
	seenFor = 10 * time.Minute // after it, a token is verified anew
)

// memory keeps the claims of tokens whose signatures are valid, by the tokens' hashes, so that each further request
// with one costs a hash instead of a verification. It holds no token and no refusal, and decides nothing: the key, the
// times and all other claims are checked with each request.
//
// It is bounded as two halves: a full newer one takes the place of the older, whose tokens are forgotten unless they
// have come again.
type memory struct {
	mu           sync.Mutex
	newer, older map[[sha256.Size]byte]verified
}

// verified is a token whose signature is valid.
type verified struct {
	keyID  string
	key    *rsa.PublicKey // that it was verified with
	claims claims
	until  time.Time
}

// recall returns what the token holds, if it was verified not long ago.
func (m *memory) recall(token [sha256.Size]byte, now time.Time) (verified, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.newer[token]
	if !ok {
		if v, ok = m.older[token]; ok {
			m.put(token, v)
		}
	}
	return v, ok && now.Before(v.until)
}

// remember keeps what a token holds.
func (m *memory) remember(token [sha256.Size]byte, v verified) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(token, v)
}

func (m *memory) put(token [sha256.Size]byte, v verified) {
	if m.newer == nil || len(m.newer) >= maxSeen {
		m.newer, m.older = map[[sha256.Size]byte]verified{}, m.newer
	}
	m.newer[token] = v
}
