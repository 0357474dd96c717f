package passkey

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"io"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/decision"
)

// Code is an operator's one-time code with which a user may add a passkey. Only its salted hash is stored. The
// enrolment's key signs it, so that write access to the store is not enough to make one.
type Code struct {
	Salt  []byte              `json:"salt"`
	Hash  []byte              `json:"hash"`
	Proof *decision.Signature `json:"proof,omitempty"` // its Until is the end of the code
	Tries int                 `json:"tries,omitempty"` // wrong ones
}

// Limits of a code.
const (
	CodeLife = time.Hour
	MaxTries = 5
	codeSize = 10 // bytes: 80 bits
)

// NewCode returns a code that is not signed yet, and its text. Text has 16 letters and digits in groups of four.
func NewCode(random io.Reader) (c Code, text string, err error) {
	secret := make([]byte, codeSize)
	c.Salt = make([]byte, 16)
	for _, b := range [][]byte{secret, c.Salt} {
		if _, err := io.ReadFull(random, b); err != nil {
			return Code{}, "", err
		}
	}
	plain := base32.StdEncoding.EncodeToString(secret)
	c.Hash = c.hash(plain)
	return c, strings.Join([]string{plain[:4], plain[4:8], plain[8:12], plain[12:]}, "-"), nil
}

func (c Code) hash(plain string) []byte {
	sum := sha256.Sum256(append(append([]byte("countersign passkey code\x00"), c.Salt...), plain...))
	return sum[:]
}

// Statement returns what the enrolment's key signs.
func (c Code) Statement(uid string, until time.Time) decision.Statement {
	return decision.Statement{Kind: decision.PasskeyCode, UID: uid, Until: until, Covers: struct{ Salt, Hash []byte }{
		c.Salt, c.Hash}}
}

// Accepts reports whether the text is the code. The caller must store a wrong try, and remove a code that was used.
func (s *Strong) Accepts(c *Code, uid, text string, now time.Time) bool {
	if s.Keys == nil || c == nil || c.Tries >= MaxTries || c.Proof == nil || c.Proof.Until.IsZero() {
		return false
	}
	plain := strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(text))
	return s.Keys.Verify(c.Statement(uid, c.Proof.Until), c.Proof, now) == nil &&
		subtle.ConstantTimeCompare(c.hash(plain), c.Hash) == 1
}
