package auth

import (
	"crypto/rsa"
	"crypto/sha256"
	"time"

	"github.com/countersign-run/countersign/shared/memo"
)

const (
	halfSeen = 1000             // tokens in each half of a memory
	seenFor  = 10 * time.Minute // after it, a token is verified anew
)

// memory keeps the claims of tokens whose signatures are valid, by the tokens' hashes, so that each further request
// with one costs a hash instead of a verification. It holds no token and no refusal, and decides nothing: the key, the
// times and all other claims are checked with each request.
type memory = memo.Cache[[sha256.Size]byte, verified]

// verified is a token whose signature is valid.
type verified struct {
	keyID  string
	key    *rsa.PublicKey // that it was verified with
	claims claims
	until  time.Time
}
