package auth

import (
	"crypto/rsa"
	"crypto/sha256"
	"time"

	"github.com/countersign-run/countersign/shared/base/memo"
)

const (
	halfSeen = 1000             // tokens in each half of a memory
	seenFor  = 10 * time.Minute // after this time, a token is verified again
)

// memory holds the claims of tokens with valid signatures, keyed by the tokens' hashes. A further request with such a
// token costs a hash instead of a verification. The memory holds no tokens and no refusals, and replaces no other
// check: the key, the times and all other claims are checked for each request.
type memory = memo.Cache[[sha256.Size]byte, verified]

// verified is a token with a valid signature.
type verified struct {
	keyID  string
	key    *rsa.PublicKey // the key that verified it
	claims claims
	until  time.Time
}
