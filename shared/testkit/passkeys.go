package testkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/authenticator"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

// Console is the address of the console of a deployment with [Strong]. Nothing serves it.
const Console = "https://agent.example.com"

// ConsoleSite is the ID to which the console's passkeys are bound.
const ConsoleSite = "agent.example.com"

// Strong writes the rules into a file in the folder. It returns the settings of a deployment in which they say which
// decisions need a passkey.
func Strong(dir, rules string) ([]string, error) {
	path := filepath.Join(dir, "strong.yaml")
	return []string{"STRONG_APPROVAL=" + path, "CONSOLE_URL=" + Console}, os.WriteFile(path, []byte(rules), 0o600)
}

// NewKey returns an authenticator whose browser shows the console.
func NewKey() *authenticator.Key { return authenticator.New(Console, ConsoleSite) }

// WithFactors returns the client of a user who has just signed in with a second factor.
func (d *Deployment) WithFactors(uid string) (Client, error) {
	token, err := d.FactorToken(uid)
	return Connect(nil, d.Base, token), err
}

// FactorToken returns the token of a user who has just signed in with a second factor.
func (d *Deployment) FactorToken(uid string) (string, error) {
	now := time.Now()
	return d.Issuer.Sign(map[string]any{"iss": d.Issuer.URL(), "aud": d.Settings()["AUTH_AUDIENCE"], "sub": uid,
		"email": issuer.UsualEmail(uid), "email_verified": true, "iat": now.Unix(), "auth_time": now.Unix(),
		"exp": now.Add(time.Hour).Unix(), "amr": []string{"pwd", "otp"}})
}

// Enrol adds the passkey of the authenticator to the user's.
func (d *Deployment) Enrol(ctx context.Context, uid string, key *authenticator.Key) error {
	c, err := d.WithFactors(uid)
	if err != nil {
		return err
	}
	challenge, err := c.PasskeyChallenge(ctx)
	if err != nil {
		return err
	}
	a, err := c(ctx, http.MethodPost, "/api/agent/passkeys", map[string]any{"name": "Key",
		"credential": key.Create(challenge)})
	if err == nil && a.HTTP != http.StatusOK {
		err = fmt.Errorf("%d %s", a.HTTP, a.Body)
	}
	return err
}

// PasskeyChallenge begins an enrolment.
func (c Client) PasskeyChallenge(ctx context.Context) (string, error) {
	a, err := c(ctx, http.MethodPost, "/api/agent/passkeys/challenge", nil)
	var in struct {
		PublicKey struct{ Challenge string }
	}
	if err == nil && (json.Unmarshal(a.Body, &in) != nil || in.PublicKey.Challenge == "") {
		err = fmt.Errorf("%d %s", a.HTTP, a.Body)
	}
	return in.PublicKey.Challenge, err
}

// ErrNoPasskeyAsked means that a decision did not ask for a passkey.
var ErrNoPasskeyAsked = errors.New("testkit: the decision did not ask for a passkey")

// AskedPasskey returns the challenge with which the answer asks for a passkey.
func AskedPasskey(a Answer) (challenge string, err error) {
	var in struct {
		Error struct {
			Passkey struct{ Challenge string }
		}
	}
	if json.Unmarshal(a.Body, &in) != nil || in.Error.Passkey.Challenge == "" {
		return "", fmt.Errorf("%w: %d %s", ErrNoPasskeyAsked, a.HTTP, a.Body)
	}
	return in.Error.Passkey.Challenge, nil
}

// Confirm decides about an approval on the console, and confirms the decision with the passkey.
func (d *Deployment) Confirm(ctx context.Context, uid string, a Approval, decision string,
	key *authenticator.Key) (Answer, error) {
	c, err := d.As(ctx, uid)
	if err != nil {
		return Answer{}, err
	}
	asked, err := c.Resolve(ctx, a, decision, "Origin", Console)
	if err != nil {
		return asked, err
	}
	challenge, err := AskedPasskey(asked)
	if err != nil {
		return asked, err
	}
	return c.Passkey(ctx, a, decision, key.Get(challenge))
}

// Passkey decides about an approval on the console with an authenticator's answer.
func (c Client) Passkey(ctx context.Context, a Approval, decision string, answer json.RawMessage) (Answer, error) {
	return c(ctx, http.MethodPost, "/api/agent/approvals/resolve", map[string]any{"approvalId": a.ApprovalID,
		"decision": decision, "argsHash": a.ArgsHash, "passkey": answer}, "Origin", Console)
}
