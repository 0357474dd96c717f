// Package agenttoken handles tokens for the agents of other programs. An agent with such a token acts for one user, and
// only at /mcp. The token names its user, so that one read returns the user and the stored token. Only the token's
// SHA-256 is stored.
package agenttoken

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Prefix begins each token, so that secret scanners can find it.
const Prefix = "cs_agent_"

// Limits of a user's tokens.
const (
	Most    = 20 // tokens of one user
	MaxName = 60 // bytes of an agent's name
)

// maxToken is longer than any token, in bytes: a UID has at most 128 bytes.
const maxToken = 512

// useStep is the precision of the stored time of last use. Most calls therefore write nothing.
const useStep = time.Hour

var encoding = base64.RawURLEncoding.Strict()

// Add creates a token with the name for the user, adds its stored form to u, and returns both. The token cannot be read
// again. Errors: ValidationError for a name that is empty, too long, not one visible line, or taken; PolicyError
// too_many; an error of random.
func Add(u *run.User, name string, random io.Reader, now time.Time) (token string, kept run.AgentToken, err error) {
	shown, hidden := visible.Line(name)
	switch {
	case visible.Blank(name) || strings.TrimSpace(name) != name:
		return "", kept, fault.Invalid("name", "must be a name without spaces at its ends")
	case len(name) > MaxName:
		return "", kept, fault.Invalid("name", "%d bytes; the limit is %d", len(name), MaxName)
	case hidden || shown != name:
		return "", kept, fault.Invalid("name", "the name must be one line of visible characters")
	case slices.ContainsFunc(u.Tokens, func(t run.AgentToken) bool { return strings.EqualFold(t.Name, name) }):
		return "", kept, fault.Invalid("name", "an agent with this name already has a token")
	case len(u.Tokens) >= Most:
		return "", kept, fault.New(fault.Policy, fault.CodeTooMany,
			"You have %d agents, which is the limit. Remove one that you no longer use.", Most)
	}
	secret := make([]byte, 32)
	if _, err := io.ReadFull(random, secret); err != nil {
		return "", kept, err
	}
	kept = run.AgentToken{ID: run.NewID(random), Name: name, CreatedAt: now}
	token = fmt.Sprintf("%s%s.%s.%s", Prefix, encoding.EncodeToString([]byte(u.UID)), kept.ID,
		encoding.EncodeToString(secret))
	sum := sha256.Sum256([]byte(token))
	kept.Hash = sum[:]
	u.Tokens = append(u.Tokens, kept)
	return token, kept, nil
}

// A Claim is the content of a token. It is not trustworthy before Find has found the token.
type Claim struct {
	UID string
	id  string
	sum [sha256.Size]byte
}

// Parse parses a token. ok is false for anything that does not have the form of a token.
func Parse(token string) (c Claim, ok bool) {
	rest, ok := strings.CutPrefix(token, Prefix)
	parts := strings.Split(rest, ".")
	if !ok || len(token) > maxToken || len(parts) != 3 || !run.ValidID(parts[1]) {
		return c, false
	}
	uid, err := encoding.DecodeString(parts[0])
	if err != nil || bytes.ContainsRune(uid, '/') || store.ValidPath(document.UserPath(string(uid))) != nil {
		return c, false
	}
	return Claim{UID: string(uid), id: parts[1], sum: sha256.Sum256([]byte(token))}, true
}

// Find returns the user's token that the claim belongs to, or nil.
func (c Claim) Find(u *run.User) *run.AgentToken {
	if u.UID != c.UID {
		return nil
	}
	for i := range u.Tokens {
		t := &u.Tokens[i]
		if t.ID == c.id && subtle.ConstantTimeCompare(t.Hash, c.sum[:]) == 1 {
			return t
		}
	}
	return nil
}

// Use sets the token's time of last use to now, unless it is less than an hour old. It reports whether t has changed
// and must be stored.
func Use(t *run.AgentToken, now time.Time) bool {
	if now.Sub(t.LastUsedAt) < useStep {
		return false
	}
	t.LastUsedAt = now
	return true
}
